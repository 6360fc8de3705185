"""Making tables anew beside the live ones, comparing them, and putting them in place.

rebuild.py      the story: plan, build, catch up, compare, swap
plan.py         what is to be made anew, from where, and whether that can be
origin.py       from where the log is read: earliest, snapshot, an epoch, an offset
snapshot.py     a table from Postgres itself
shadow.py       the tables beside the live ones, and how far they are
unfinished.py   rebuilds that are under way, so that a killed one goes on or is cleaned up
compare.py      what differs between two versions of a table
exchange.py     asking the running engine to swap, or doing it in its place
rollback.py     back to what a swap has replaced
reset.py        a new generation beside the old one, published in one epoch
"""
