"""Which epoch is read, and what the epochs have done.

moment.py     which epoch to read: the last one, an earlier one, or one that holds a position
published.py  a published epoch: position, age, tables and their versions
history.py    what the published epochs have done: by epoch, by minute, and for one table
"""
