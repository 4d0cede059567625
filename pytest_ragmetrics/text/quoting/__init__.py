"""How the quotation marks of a text are read: behind ``quotations``."""
