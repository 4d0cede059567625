"""A run of pytest: what each of its processes holds, and what it leaves behind at the end."""
