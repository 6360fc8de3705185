"""What an epoch takes in: the deltas of the tables, bulk reads through Spark, and the quarantine."""
