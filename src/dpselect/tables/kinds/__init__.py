"""The kinds of cells and what people declare of a column: one reading for every package. One file a kind."""
