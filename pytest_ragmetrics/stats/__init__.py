"""What may be concluded from scores: intervals, paired comparisons, and how many samples would settle a question.

Everything here works on plain numbers and knows neither metrics nor judges.
"""

from __future__ import annotations
