"""The demo: a small social shop and a bank, followed by the whole system and checked against Postgres."""
