"""The three services as processes.

service.py   what they have in common: starting, health checks, stopping
process.py   a process that outlives us, found again by its pid file
ports.py     given ports, or free ones
jvm.py       what the two Java services share
postgres.py  Postgres
kafka.py     Kafka
connect.py   Kafka Connect
"""
