"""Reading what is published, with or without a running engine."""
