"""The incremental maintenance of views without Spark: DuckDB runs the SQL, and the tables are in memory."""
