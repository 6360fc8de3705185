"""What an epoch takes in: the deltas of the tables, bulk reads through Spark, and the quarantine.

deltas.py              what the events of a cut change in each mirror
mirror_errors.py       names the table in an unexpected error in its changes
bulk.py                bulk reads: a long part of a topic, by Spark tasks
bulk_files.py          the task of a bulk read, which writes data files
quarantine.py          the table of events that are in no mirror
quarantine_entries.py  its entries, as objects and as rows
quarantine_step.py     what it means for an epoch, and what the epoch does to it
lost_rows.py           rows that the connector has skipped at a restart
"""
