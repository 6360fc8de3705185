"""Commands that only read.

query.py    `cdc-views query`
sql.py      `cdc-views sql`
status.py   `cdc-views status`
epochs.py   `cdc-views epochs`
explain.py  `cdc-views explain`
"""
