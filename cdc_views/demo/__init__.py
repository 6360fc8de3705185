"""The demo: a small social shop and a bank, mirrored by the whole system and checked against Postgres."""
