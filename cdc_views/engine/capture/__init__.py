"""Everything before the first epoch: preflight checks, connector, initial snapshot.

declared.py           the tables and views of a project, before Spark
mirrored.py           the tables as their mirrors have them
captures.py           the captures of a project (slot, topics, connector), and which is current
generation.py         the facts that identify a generation
readiness.py          preflight checks of all services
start.py              starts and resumes a capture
initial.py            the initial snapshot
read_ahead.py         reads tables while the initial snapshot is being taken
self_contained.py     whether a mirror can be rebuilt from the log alone
broken.py             remembers that the log's history is broken
capture_removal.py    removes a capture
"""
