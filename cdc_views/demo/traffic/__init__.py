"""What the workload does to the demo's database.

transactions.py  the transactions, by kind
ledger.py        what was committed
values.py        random values, and random changes
vocabulary.py    words for texts
"""
