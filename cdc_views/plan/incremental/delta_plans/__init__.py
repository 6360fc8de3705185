"""Plans that take the changed rows of the inputs, and do not compute whole groups again: ADD and PATCH.

additive.py    counts and sums, of all rows or of groups
extremes.py    min, max and count(DISTINCT) over all rows
top_rows.py    the first rows of each partition
first_rows.py  the first rows of a whole query
linear.py      what such a query may consist of
"""
