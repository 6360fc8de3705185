"""Watching a project: the services, the slot, and how far readers are behind the source.

project_watch.py    starts to watch when somebody first asks, for a process that only reads
watch.py            what is known of a project at this moment
looks.py            one look at each service
sampled.py          looks at one service every few seconds, in a thread of its own
wal_times.py        when the WAL of the source ended where, so that positions become seconds
offset_bytes.py     about how many bytes an offset of each topic takes
freshness.py        how old each table is
health.py           what a project is doing, and what is wrong with it
stages.py           the stages of the data flow: position, lag and rate of each
status.py           what `cdc-views status` and the page show
connector_alarm.py  logs when the connector does not run
words.py            durations, sizes and the state of the slot in words
"""
