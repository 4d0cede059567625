"""What stands between a user and a running judge: looked at part by part, with what to do about it."""
