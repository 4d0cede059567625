"""Files and folders, whatever they are for: naming, reading, writing, locking and sharing them."""
