"""Questions to a judge whose answers are known: how often it is right, and whether text under test talks it over.

They are asked as the tasks of the metrics, so that prompts, delimiters and repairs are those of real use.
"""

from __future__ import annotations
