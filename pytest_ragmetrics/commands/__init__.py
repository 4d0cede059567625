"""The commands of `ragmetrics`, a module each."""
