"""Spark SQL of views.

relations.py     the inputs of queries, as temporary views
repeatable.py    a planned query that can be run again
small_queries.py queries over a few rows, which cost as few calls of the JVM as possible
"""
