"""The source, Postgres: catalog, preflight, publication, slot, markers, and the capture of DDL and TRUNCATE."""
