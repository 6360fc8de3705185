"""What must hold in the source: `check`, and what it can fix.

preflight.py       all checks, and the SQL that fixes a finding
table_checks.py    the checks of each table
refusals.py        columns that cannot be mirrored
snapshot_dates.py  dates that Debezium's snapshot moves to other days
fixes.py           `check --fix`
dba_script.py      `check --print-sql`
"""
