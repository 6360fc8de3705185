"""Commands that write nothing.

query.py    `cdc-views query`
status.py   `cdc-views status`
epochs.py   `cdc-views epochs`
explain.py  `cdc-views explain`
"""
