"""Reading of views by their kind: each kind in one file.

timeline.py  pages of a timeline
cache.py     rows of a cache by key, with their state and ETag
hot_rows.py  rows that are kept in memory, within a budget
search/      ranked answers of a search index to a text
"""
