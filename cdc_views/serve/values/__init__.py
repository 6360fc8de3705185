"""The values of rows: as keys, as JSON, and how large they are.

keys.py         the values of a key, as a table stores them
json_value.py   the values of rows as JSON
opaque.py       tokens and cursors as texts
answer_size.py  the size of an answer, and its limit
time_limit.py   how long a read may take
"""
