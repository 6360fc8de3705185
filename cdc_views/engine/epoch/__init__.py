"""One epoch, from a cut of the log to a published record: start with `steps.py`.

recovery.py  taking the warehouse over, from whatever the last writer left
steps.py     the six steps
mirrors.py   step 4: one Delta version per changed mirror
records.py   what an epoch writes into the control log, and reads from it
abandon.py   rolls back what an attempt has committed
swap.py      an epoch that publishes shadow tables in place of the published ones
"""
