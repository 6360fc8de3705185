# List the tasks
default:
    @just --list

# What CI runs; `just ci --durations` also prints the slowest tests
ci *options:
    ./scripts/test {{options}}

# Tests that need neither a JVM nor services
unit:
    ./scripts/test -n 2 tests/unit

# The whole system on this machine, on a demo database
demo *options:
    ./scripts/demo {{options}}

# Format the code
format:
    .venv/bin/ruff format . && .venv/bin/ruff check --fix .

# The wheel and the sdist, in dist/
wheel:
    .venv/bin/python -m hatchling build

# Remake the lock files from pyproject.toml and the stack's coordinates
lock:
    ./scripts/lock

# A rebuild that is killed, or ends by an error, at every step of it, instead of at some
rebuild-kills:
    CDC_VIEWS_REBUILD_KILLS=all ./scripts/test tests/stack/test_rebuild.py

# The conformance suite of the Delta tables with 200 random histories instead of 3
conformance:
    CDC_VIEWS_CONFORMANCE_SEEDS=200 CDC_VIEWS_CONFORMANCE_SPARK=8 ./scripts/test tests/spark/test_conformance.py

# Engines that are stopped at any point and replaced, and woken after their logs were cleaned up
two-writers:
    CDC_VIEWS_TWO_WRITERS=all ./scripts/test tests/faults/test_two_writers.py

# All pairs of crashes, instead of some at random
crash-pairs:
    CDC_VIEWS_CRASH_PAIRS=all ./scripts/test tests/faults/test_crash_pairs.py tests/spark/test_crash_pairs.py \
        tests/spark/test_building_crash_pairs.py

# What takes too long for each change: the tests marked nightly, and larger samples of the sweeps; prints its time
nightly:
    ./scripts/nightly

# 2,000 random views over random histories without Spark, by Postgres and in Spark, and 2,000 histories of views in Spark
oracle:
    CDC_VIEWS_EXAMPLES=2000 ./scripts/test -n 2 tests/unit/incremental
    CDC_VIEWS_EXAMPLES=2000 ./scripts/test tests/stack/test_random_views.py tests/spark/test_random_views.py
    CDC_VIEWS_EXAMPLES=2000 ./scripts/test tests/spark/test_random_histories.py

# The test of COPY with a Debezium older than 3.7, too. That version loses rows, which shows that the test can fail
old-debezium:
    CDC_VIEWS_OLD_DEBEZIUM=1 ./scripts/test tests/stack/test_copy.py

# An hour of faults at random under load, every published version compared with Postgres
soak *options:
    .venv/bin/python -m bench.soak {{options}}
