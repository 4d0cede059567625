"""Text in, offsets out: finding quotations and finding passages."""
