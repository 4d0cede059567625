"""A dry run: who stands in for judge and embedder, and the forecast of what they would have been asked."""
