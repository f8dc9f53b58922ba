"""The maps, those that are alike in one file."""
