"""The tables of search indexes, which are derived from the rows of a view.

tables.py   which tables a search index has, and where
postings.py the changes of these tables: postings, and totals of the documents
"""
