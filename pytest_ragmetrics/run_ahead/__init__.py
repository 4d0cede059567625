"""Running ahead: the rows of data sets are answered and scored before the tests that use them are reached."""
