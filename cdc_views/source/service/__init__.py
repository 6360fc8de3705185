"""The service schema `cdc_views` in the source.

service_sql.py     its SQL, in a form that a DBA can read and run
service_tables.py  its tables and their triggers
captured.py        reads the captured set of a project
marker.py          writes markers
"""
