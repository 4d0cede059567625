"""Rows of data sets, answered and scored ahead of their tests."""
