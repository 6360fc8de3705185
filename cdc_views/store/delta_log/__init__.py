"""The log of one Delta table: its entries, the state they describe, checkpoints, and who wrote each version."""
