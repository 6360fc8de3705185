"""Debezium and Kafka Connect, which runs it.

connect.py           Kafka Connect over REST
connector.py         the connector's settings
ownership.py         whose a connector is
health.py            the connector, the topics and the slot, checked while waiting and reading
notifications.py     what Debezium reports
snapshot.py          the initial snapshot, by its notifications
connector_starts.py  the starts of the connector
placeholder.py       what events have for a value that Postgres did not put into the WAL
"""
