"""What making a golden set says at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_ragmetrics.explain.phrases import counted
from pytest_ragmetrics.generating.drafting import Skipped
from pytest_ragmetrics.generating.golden_set import Tally
from pytest_ragmetrics.result import Usage
from pytest_ragmetrics.text.printable import printable

_NAMED = 5


def summary(tally: Tally, *, file: Path, rows: int, wanted: int, passed_over: Sequence[str]) -> list[str]:
    """Return the lines: rows, what was left out and why, and what it cost."""
    lines = [f"{file}: {counted(rows, 'row')}, {tally.new} of them new"]
    if tally.stopped is not None:
        lines.append(f"stopped: {_stop(tally.stopped)}; the rows so far are kept, and the same command goes on")
    elif rows < wanted:
        lines.append(f"{wanted} were asked for, and every passage was tried: give more documents")
    if tally.new:
        lines.append("written by a model: read every row before you rely on it")
    return [*lines, *_skipped(tally.skipped), *_passed_over(passed_over), *_bill(tally.usage)]


def _stop(error: Exception) -> str:
    # The budget is that of a test run, where its option has another name.
    return printable(str(error)).replace("--rag-max-calls", "--max-calls").partition(": nothing more is asked")[0]


def _skipped(skipped: Sequence[Skipped]) -> list[str]:
    if not skipped:
        return []
    reasons = Counter(skip.reason for skip in skipped)
    told = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    lines = [f"skipped {counted(len(skipped), 'passage')}: {told}"]
    for skip in skipped[:_NAMED]:
        detail = f": {skip.detail}" if skip.detail else ""
        lines.append(f"  {printable(skip.passage)}: {skip.reason}{printable(detail)}")
    if len(skipped) > _NAMED:
        lines.append(f"  and {len(skipped) - _NAMED} more")
    return lines


def _passed_over(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(printable(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"no text, passed over: {shown}{more}"]


def _bill(usage: Usage) -> list[str]:
    if not usage.calls + usage.cached_calls:
        return []
    tokens = usage.prompt_tokens + usage.completion_tokens
    made = f"{usage.calls} made ({tokens} tokens, {_money(usage.cost)})"
    return [f"judge calls: {made}, {usage.cached_calls} saved by the cache ({_money(usage.saved)})"]


def _money(amount: float | None) -> str:
    return "price unknown" if amount is None else f"${amount:.4f}"
