"""Public helpers for our tests and the users': harness, oracle, random histories."""
