"""Choosing among private candidates."""
