"""From Debezium's events to the rows that a mirror must write.

types.py        for each Postgres type: the Arrow type of the mirror, and the decoder of Debezium's JSON
unchanged.py    how Debezium writes a value that Postgres left out of the WAL (unchanged TOAST)
envelope.py     one Kafka record to one change of one key
fold.py         the changes of an epoch, per key and column, to upserts and deletes
"""
