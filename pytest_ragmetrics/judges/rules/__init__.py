"""How the local judge answers each task: by the words that texts share."""
