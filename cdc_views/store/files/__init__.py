"""Parquet data files of a table: writing them, and merging several into one."""
