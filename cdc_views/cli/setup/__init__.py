"""Commands before an engine runs, and the removal of everything.

init.py     `cdc-views init`
up.py       `cdc-views up`
check.py    `cdc-views check`
down.py     `cdc-views down`
destroy.py  `cdc-views destroy`
"""
