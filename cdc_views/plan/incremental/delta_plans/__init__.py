"""Plans that take the changed rows of the inputs, and do not compute whole groups again: ADD and PATCH.

additive.py      counts and sums of all rows
group_totals.py  counts and sums of groups, and of grouping sets
affected_rows.py the rows over which totals change, of any FROM
totals.py        the columns that are counts and sums
averages.py      averages over all rows
extremes.py      min, max and count(DISTINCT) over all rows
ordered_lists.py the columns that are ordered lists of the values of a group
top_rows.py      the first rows of each partition
first_rows.py    the first rows of a whole query
shown_columns.py the columns that such a view only shows
linear.py        what such a query may consist of
"""
