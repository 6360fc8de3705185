"""Watching a project: the services, the slot, and how far readers are behind the source."""
