"""Runs as values: records, documents of a run, runs merged and compared, and how all of it is worded."""
