"""Adapters from whatever holds a column to rank queries: arrays, files, frames, tables of databases."""
