"""Gates: thresholds over the scores of all tests that one function makes, each of them one more test."""
