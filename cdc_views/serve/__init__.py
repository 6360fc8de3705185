"""Reads what is published, with or without a running engine.

reader.py        the Python client: a warehouse, and one epoch of it
table_reader.py  the client's view of one table: as Arrow, DuckDB, Polars, pandas, Spark
kinds/           reading of views by their kind: timelines, caches, search indexes
moment.py        which epoch to read: the last one, an earlier one, or one that holds a position
changes.py       the changes of a table, epoch by epoch, resumable
opaque.py        tokens and cursors as texts
change_lines.py  the same as JSON; json_value.py: the values of rows
published.py     a published epoch: position, age, tables and their versions
sql/             SQL over a published epoch, by DuckDB
keys.py          the values of a key, as a table stores them
spark_tables.py  the tables of one epoch in a Spark session
http/            `cdc-views serve`: all of this over HTTP
prometheus.py    metrics of the running engine; state_metrics.py: those of tables and services
watch/           looks at the services beside the engine: for metrics, log and `status`
"""
