"""Delta tables and the control log. `warehouse.py` is the door for writers, `reading.py` for readers.

storage/    the file system: durable writes, errors of the operating system
delta_log/  the log of one table: entries, state, checkpoints, origin of each version
files/      Parquet data files
index/      finding stored rows by key without Spark
commits/    the ways to commit: directly from the driver, or through Spark
control/    the control log `_epochs`
upkeep/     compaction, checkpoints, vacuum
"""
