"""Random faults under load, with every published version compared with Postgres.

    python -m bench.soak --minutes 60 --seed 1

A run is a series of rounds (round.py). A round starts with a database under load, then starts the connector, the
snapshot and the engine. Faults follow one after the other (faults.py), each until everything has recovered. The oracle
judges every version. At the end of the round the log is damaged, and the engine must report it (alarms.py).
"""
