"""Statistics of scores: intervals, comparisons with bounds, paired comparisons, agreement, corrected means.

Everything here works on plain numbers and knows neither metrics nor judges.
"""
