"""Reads what is published, with or without a running engine.

published.py   the published epoch: position, age, tables and their versions
query.py       SQL over the published epoch, by DuckDB
"""
