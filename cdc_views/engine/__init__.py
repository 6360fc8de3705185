"""The epoch loop. Read `epoch.py` first: it is the whole system in one screen.

epoch.py      the six steps of an epoch
deltas.py     step 3: Debezium events, folded per key, to the rows that vanish and appear
bulk.py       a table that the driver does not hold: from its whole topic, by Spark's tasks (bulk_files.py)
read_ahead.py the same while Debezium fills the topics, before there is an epoch
mirrors.py    step 4: one Delta version per changed mirror
lost_rows.py  behind step 4: whether the connector has left rows out of the log
views.py      step 5: recompute, diff, commit; children after parents
strategies/   how a view's changes are found; FULL for now
recovery.py   taking the warehouse over: fence, foreign commits, the open intent
tables.py     what the engine knows of its tables: where they are, at which version
capture.py    connector and initial snapshot (initial.py: with the tables read meanwhile)
captures.py   which capture is current: slot, topics and connector of each reset
removal.py    removing a capture; destroy.py: removing all that a project made
engine.py     start, loop, stop
"""
