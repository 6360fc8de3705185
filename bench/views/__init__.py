"""The time of the views stage of an epoch, by the size of the base tables and by the number of changes.

    python -m bench.views --sizes 100000,1000000 --changes 1,100

data.py        the rows of the base tables, and changes of them
tables.py      the columns of the base tables: one SELECT of DuckDB for each
stage.py       an engine over these tables, without Postgres, Kafka and Debezium
baselines.py   full recomputation by Spark, DuckDB and Postgres
figures.py     the names of the figures, and the picture
sql/           five views beside those of the demo
duckdb/        the SELECT of a view for DuckDB, where it cannot run that of the view
postgres/      the same for Postgres
"""
