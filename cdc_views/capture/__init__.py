"""From Debezium's events to the rows that a mirror must write.

types.py        for each Postgres type: the Arrow type of the mirror, and the decoder of Debezium's JSON
texts.py        values as the text that Postgres prints, for types that Delta does not have
printed.py      the same values, read from Postgres itself instead of from events
unchanged.py    how Debezium writes a value that Postgres omitted from the WAL (unchanged TOAST)
envelope.py     one Kafka record to one change of one key
fold.py         the changes of an epoch, per key and column, to upserts and deletes
latest.py       the same for a long piece of log: only the last event of each key is decoded
sift.py         the fold when some events cannot be applied: applies the others, and parks these
"""
