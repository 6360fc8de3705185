"""Reads what is published, with or without a running engine.

reader.py        the Python client: a warehouse, and one epoch of it
table_reader.py  the client's view of one table: as Arrow, DuckDB, Polars, pandas, Spark
spark_tables.py  the tables of one epoch in a Spark session
epochs/          which epoch is read, and what the epochs have done
values/          the values of rows: as keys, as JSON, and how large they are
changes/         the changes of a table, epoch by epoch, resumable
kinds/           reading of views by their kind: timelines, caches, search indexes
sql/             SQL over a published epoch, by DuckDB
http/            `cdc-views serve`: all of this over HTTP; page/: its page for browsers
watch/           looks at the services beside the engine: for metrics, log and `status`
prometheus/      metrics for Prometheus
"""
