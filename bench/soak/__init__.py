"""Everything that can go wrong, at random and under load, and every published version held against Postgres.

`python -m bench.soak --minutes 60 --seed 1`. One run is a row of rounds (round.py). Each begins with nothing but
a database under load: connector, snapshot, engine. Then faults come one after the other (faults.py), until all of
it has recovered; the oracle judges every version; and at last the log is damaged, and the engine has to say so
(alarms.py).
"""
