"""Benchmarks. Run one with `python -m bench.NAME` from the root of the repository; README.md has the figures."""
