"""Calibration of judges: their scores compared with human labels, and means corrected for their known errors."""
