"""Everything before the first epoch: preflight checks, the connector, the initial snapshot, a reset's captures."""
