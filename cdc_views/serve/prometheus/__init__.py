"""Metrics for Prometheus.

engine.py  what the running engine counts
state.py   what is true of tables and services, computed when Prometheus asks
"""
