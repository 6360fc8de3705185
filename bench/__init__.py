"""Measured figures, each by `python -m bench.NAME` from the repository's root; README.md has them."""
