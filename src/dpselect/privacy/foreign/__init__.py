"""Readers of what other libraries say about privacy, one file for each library."""
