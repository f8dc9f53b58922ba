"""Guarantees of the usual base mechanisms, one file each."""
