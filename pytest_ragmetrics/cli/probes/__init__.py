"""Probes: questions to a judge with known answers, asked as the tasks of the metrics (same prompts and repairs)."""
