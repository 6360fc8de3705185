"""Kafka: its topics, its records, and reading them.

topics.py         topics, their settings and their offsets
record.py         a record of a topic: its offset, its order, its JSON
reader.py         one consumer over explicit offsets
at_least_once.py  what workers without exactly-once deliver again
memory_limit.py   how much of the driver's memory the events of a cut may take
retention.py      how long the log keeps what the mirrors need
"""
