"""Upkeep of the warehouse between two epochs."""
