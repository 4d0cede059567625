"""What a run leaves behind: records, and the pages and tables made from them."""

from __future__ import annotations
