"""Reports of a run: page, Markdown, terminal summary, junit properties."""
