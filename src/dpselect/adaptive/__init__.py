"""Asking the same data again and again."""
