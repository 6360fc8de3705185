"""Commands that write nothing.

query.py    `cdc-views query`
status.py   `cdc-views status`
epochs.py   `cdc-views epochs`
explain.py  `cdc-views explain`

view_work.py  what the last epochs did for a view, for `explain`
"""
