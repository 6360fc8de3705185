"""The engine. Read `epoch/steps.py` first: it has the six steps of an epoch.

service/     the process: start, loop, requests, lock, restart
capture/     before the first epoch: preflight, connector, initial snapshot, reset
epoch/       the six steps, recovery, swap
intent.py    what an attempt at an epoch will do
tables.py    the tables that the steps work on: their paths and versions
input/       step 3: events of the log become changes of mirrors; bulk reads, quarantine, lost rows
building/    views that are built beside the epochs until they can join them
views/       step 5: recompute, diff, commit; the checks of a view's declaration
spark/       the Spark session and its JVM
upkeep/      compaction and clean-up between two epochs
parallel.py  independent work on several tables at the same time
"""
