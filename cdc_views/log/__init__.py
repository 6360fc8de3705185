"""Kafka and Connect: the topics, the connector, the cut, and reading a range of offsets.

log.py         one cut after the other
cut_reader.py  reads the log up to a marker, into the buffer of the next cut
log_topics.py  the topics of one log as they were when it was opened
preflight.py   what must hold in Kafka and Connect before a start
cuts/          the cut: markers, the barrier, the buffer, DDL, ranges
debezium/      the connector: its settings, state, snapshot and notifications
kafka/         topics, records and reading them
"""
