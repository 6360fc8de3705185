"""Reading while everything is written: searches, timelines, cached rows, and the fan-out of a post.

    python -m bench.serve --documents 100000 --followers 10000

data.py        the source's rows, and the texts that are searched for; schema.sql, rows.sql, load.sql
searched.py    the systems that are read: ours, Postgres, tantivy, DuckDB
duckdb_packages.py, duckdb_process.py    an earlier DuckDB, which has a full-text search on PyPI
reading.py     the process that reads them, and measures each operation
watcher.py     the process that looks for the probes in each epoch
fanout.py      the process that writes posts for all followers
equality.py    the comparison with Postgres at the end; bm25.sql
figures.py     the names of the figures
views/         the three views, postgres/ the same rows by Postgres
"""
