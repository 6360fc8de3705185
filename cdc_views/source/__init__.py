"""Postgres: catalog, preflight, publication, slot, marker, and the capture of DDL and TRUNCATE."""
