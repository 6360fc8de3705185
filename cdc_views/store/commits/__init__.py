"""The ways to commit a change to a table: directly from the driver, or through Spark."""
