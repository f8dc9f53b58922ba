"""The privacy cost of a sweep that another tool has run, from the record that the tool left."""
