"""Who may open what is made here: its owner alone."""

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
