"""The local stack without Docker: pinned files, and Postgres, Kafka and Connect as plain processes.

`pins` reads what is pinned, `fetch` brings it into the cache, `local` starts and stops the services;
`class_archive` makes Spark's JVM start faster.
"""
