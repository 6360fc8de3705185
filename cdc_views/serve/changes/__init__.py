"""The changes of a table, epoch by epoch, resumable.

feed.py   the changes, as Arrow and as rows of Python
lines.py  the same as JSON
"""
