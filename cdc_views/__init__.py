"""Delta tables that equal a SELECT over Postgres, at a known commit."""

__version__ = "0.1.0"
