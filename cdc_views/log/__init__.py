"""Kafka and Connect: topics and their settings, the connector, the cut, reading a range."""
