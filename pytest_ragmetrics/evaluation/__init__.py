"""Scoring many samples by many metrics: the loop, the table that comes of it, and comparing two tables."""
