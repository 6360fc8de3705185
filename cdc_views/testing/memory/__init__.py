"""The source and the log of the harness, in memory.

ddl.py            reads Postgres's CREATE TABLE into the source's catalog
values.py         Python values to what Postgres stores, and from there to Debezium's JSON
memory_source.py  tables that apply changes as Postgres would
memory_log.py     the log that Debezium would have written
"""
