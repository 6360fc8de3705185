"""One epoch, from a cut of the log to a published record: start with `steps.py`."""
