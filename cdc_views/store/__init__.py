"""Delta tables: create, look up, commit, fence, restore; the control log; the lock of the warehouse.

`warehouse` is the door. Small changes are committed directly (`direct`, `plain`), found by `lookups`; large ones go
through Spark (`commit`, `spark`). The control log and readers use delta-rs and need no JVM (`control`, `reading`).
"""
