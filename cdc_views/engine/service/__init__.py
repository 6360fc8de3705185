"""The engine as a process: start, loop, requests, lock and restart."""
