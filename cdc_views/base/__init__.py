"""What every layer knows of the source: its names, its positions, its values, and the tables that are captured.

names.py           names of tables and columns, and their written form
lsn.py             positions in the WAL
captured.py        the captured set: what determines the meaning of the events
stopped.py         tables that are stopped at a change that cannot be applied
column_options.py  settings of single columns
service_schema.py  names in the service schema
rendering.py       session settings that change how Postgres prints a value
python_values.py   values of Arrow as values of Python, and back
exact_value.py     a value that somebody gives, as a column stores it
rate.py            how fast such a number as a position grows
"""
