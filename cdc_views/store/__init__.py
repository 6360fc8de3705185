"""Delta tables and the control log, in layers: each one imports only those below it.

warehouse   the tables of one writer: create, commit, look up, restore
upkeep      compaction, checkpoints, vacuum
control     the control log `_epochs`
reading     reading a published version without a JVM
commits     committing a change: by the driver itself, or through Spark
index       finding stored rows by key without Spark
files       Parquet data files
delta_log   the log of one table: entries, state, checkpoints, origin of each version
storage     the file system: durable writes, errors of the operating system

Each of these is a door: other packages import what it exports, and nothing deeper. Only warehouse and commits use
Spark.
"""
