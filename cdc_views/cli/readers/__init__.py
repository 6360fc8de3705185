"""Commands that write nothing.

query.py     `cdc-views query`
get.py       `cdc-views get`
timeline.py  `cdc-views timeline`
search.py    `cdc-views search`
changes.py   `cdc-views changes`
status.py    `cdc-views status`
epochs.py    `cdc-views epochs`
explain.py   `cdc-views explain`
serve.py     `cdc-views serve`

moments.py    the options that say at which moment to read
view_work.py  what the last epochs did for a view, for `explain`
"""
