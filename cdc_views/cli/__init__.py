"""The command line: one command per file, without logic of its own."""
