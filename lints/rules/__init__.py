"""One rule a file; each has a `RULE`."""
