"""One file for the record of each tool. Each registers its reader, and nothing else names it."""
