"""Gates: bounds on the scores of all tests of a function, decided at its end."""
