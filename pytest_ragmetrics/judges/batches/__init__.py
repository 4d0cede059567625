"""Batches: requests that a provider answers within a day, at half the price."""
