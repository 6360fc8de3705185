"""Upkeep of tables and of the control log: compaction, checkpoints, clean-up, vacuum."""
