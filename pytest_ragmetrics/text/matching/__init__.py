"""How a quotation is found in its contexts: behind ``alignment``."""
