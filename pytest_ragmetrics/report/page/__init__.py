"""The HTML report: values laid out for reading, then elements and templates that show them.

- ``frame``, ``elements``, ``visible``: what all of it is built from; nothing from outside becomes markup.
- ``overview``: the first screen, with ``gates``, ``changes``, ``metric_lines``, ``distribution`` and ``scale``.
- ``entries``, ``entry_view``, ``listing``: the tests, a row for each, and how they are packed.
- ``exhibits``, ``exhibit_view``: what is inside a test, with its ``findings`` and ``votes``.
- ``segments``, ``passages``: long texts, cut where marks begin and end, and folded.
"""

from __future__ import annotations
