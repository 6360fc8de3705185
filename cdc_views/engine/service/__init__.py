"""The engine as a process: start, loop, requests, lock and restart.

supervisor.py  checks, the capture, and engines one after another
engine.py      takes the warehouse over and publishes epoch after epoch
target.py      the position that "caught up" means
patience.py    waiting for services and a JVM that are down
requests.py    requests of other processes to the running engine
lock.py        the lock that allows one engine per warehouse and machine
holder.py      who holds that lock, for readers
destroy.py     removes what a project has created in Connect, Kafka and Postgres
"""
