"""Rebuilds tables as shadow tables, compares them with the live ones, and swaps them in; resets a project.

rebuild.py         the steps of a rebuild: plan, build, catch up, compare, swap
plan.py            which tables are rebuilt, from which offsets, and whether that is possible
origin.py          where a rebuild starts: earliest, snapshot, an epoch, an offset
snapshot_rows.py   the rows of a table from Postgres
shadow_tables.py   the tables being rebuilt, and how much of the log they hold
unfinished.py      rebuilds in progress, so that a killed one is continued or cleaned up
diff_report.py     the differences between two versions of a table
exchange.py        asks the running engine for a swap, or does it where no engine runs
rollback.py        swaps back the tables that a swap has replaced
bad_events.py      retries or discards events in quarantine
reset.py           a new generation beside the old one, published in one epoch
"""
