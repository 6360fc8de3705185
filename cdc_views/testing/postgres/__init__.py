"""What Postgres itself says, for comparison with published tables (docs/oracle.md).

wal.py       decodes Postgres's WAL for the oracle
shadow.py    a second database, advanced by that WAL
question.py  a query in Postgres, compared with a published table
compare.py   published tables compared with expected answers
"""
