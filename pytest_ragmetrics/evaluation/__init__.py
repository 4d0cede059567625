"""Samples scored: one, a table, files of any size; judge, embedder and transports of a run; thresholds of sets."""
