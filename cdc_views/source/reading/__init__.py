"""Reading rows and positions of the source.

exported.py  the rows as of one exact position of the WAL
pages.py     the rows in one page of a table
position.py  the end of the WAL
printing.py  makes the source print values as the mirror has them
"""
