"""A first golden set made of documents: questions with answers, each held against the passage it comes from."""
