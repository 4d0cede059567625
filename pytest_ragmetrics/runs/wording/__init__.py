"""Texts on scores for people: the only place where failures, comparisons and runs are worded."""
