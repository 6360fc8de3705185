"""Delta tables: create, look up, commit, fence, restore; the control log; the lock of the warehouse.

Writing of rows goes through Spark (`warehouse`, `commit`, `spark`); the control log and readers use
delta-rs and need no JVM (`control`, `reading`). Log entries without rows are written here directly
(`entries`): creation, because neither engine gives exactly our protocol, and fences.
"""
