"""Commands that write the warehouse.

run.py         `cdc-views run`
rebuild.py     `cdc-views rebuild`
rollback.py    `cdc-views rollback`
reset.py       `cdc-views reset`
quarantine.py  `cdc-views quarantine`
"""
