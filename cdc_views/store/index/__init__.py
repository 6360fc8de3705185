"""Finding stored rows by key: fingerprints, the index over them, and reading the rows that it finds."""
