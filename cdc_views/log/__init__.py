"""Kafka and Connect: the topics, the connector, the cut, and reading a range of offsets.

log.py              one cut after the other; its parts are cut_reader.py, table_stops.py and log_topics.py
cut.py              the cut itself, and which records of a partition belong to it
barrier.py          waits for a marker; markers.py reads them
buffer.py           the records since the last cut; memory_limit.py bounds them
reader.py           one consumer over explicit offsets; ranges.py reads a range again
record.py           a record of a topic: its offset, its order, its JSON
ddl.py              what DDL and TRUNCATE did to the captured tables
retention.py        how long the log keeps what the mirrors need
health.py           the connector, the topics and the slot, checked while waiting
connector.py        the connector's settings; connect.py is Connect's REST API
notifications.py    what Debezium reports: snapshot.py, connector_starts.py; and the log's placeholder.py
at_least_once.py    workers without exactly-once
topics.py           topics, their settings and their offsets; preflight.py checks them
"""
