"""Adapters from column types to rank queries: arrays, files, frames, tables of databases."""
