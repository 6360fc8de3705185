"""The cut: where an epoch ends, and which records belong to it.

cut.py          the cut itself, without Kafka
markers.py      markers as they come out of the log
barrier.py      a marker that has come through the log, and everything committed before it
buffer.py       the records since the last cut
ranges.py       reading a range of offsets again, as it was when it was cut
ddl.py          what DDL and TRUNCATE did to the captured tables
table_stops.py  which tables a cut stops
"""
