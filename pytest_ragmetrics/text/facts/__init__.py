"""What a text says that can be checked by rule: numbers, dates, names and telling words."""
