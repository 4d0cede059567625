"""Judges: who answers the questions that metrics ask."""
