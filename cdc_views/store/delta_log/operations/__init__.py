"""Operations on one whole table, through its log.

creation.py    creating a table, or checking that it is ours
copying.py     a copy of one version
restoring.py   restoring an older version without Spark
fencing.py     an empty version that shuts out older attempts
checkpoint.py  checkpoints, and the clean-up of the entries before them
"""
