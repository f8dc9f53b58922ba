"""Columns of data frames that are not in memory: Ibis, Spark, polars' lazy ones, Dask. Each file registers a reader."""
