"""Mistakes that users make, by door: each is a line as it was typed, and the part of it that is wrong."""
