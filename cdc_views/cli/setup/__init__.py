"""Commands for the project, the local stack and the source: what an engine needs, and its removal.

init.py     `cdc-views init`
up.py       `cdc-views up`
sql.py      `cdc-views sql`
check.py    `cdc-views check`
down.py     `cdc-views down`
destroy.py  `cdc-views destroy`
"""
