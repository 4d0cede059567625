"""The table of metrics is made of the metrics, and the README has the one that is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragmetrics import MetricResult, Sample, cli
from pytest_ragmetrics.commands.metrics import metric_table, table_by_needs
from pytest_ragmetrics.metrics import (
    AnswerRelevancy,
    Harmfulness,
    IDBasedContextRecall,
    Metric,
    Relevance,
    SemanticSimilarity,
)
from pytest_ragmetrics.metrics.registry import built_in_metrics

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BEGINS, ENDS = "<!-- ragmetrics metrics --by-needs -->\n", "\n<!-- end of the table -->"


def cells(kind: type[Metric]) -> dict[str, str]:
    """Return the row of a metric by the heads of the columns."""
    heads, _, row = (line.strip("| ").split(" | ") for line in metric_table([kind]))
    return dict(zip(heads, row, strict=True))


def test_the_readme_has_the_table() -> None:
    """Paste what `ragmetrics metrics --by-needs` prints between the two comments when this fails."""
    assert README.partition(BEGINS)[2].partition(ENDS)[0] == "\n".join(table_by_needs())


def test_a_row_for_every_metric() -> None:
    """Each once, with what its docstring says in one line."""
    heads, rule, *rows = metric_table()
    assert len(rows) == len(built_in_metrics())
    assert {line.count(" | ") for line in rows} == {heads.count(" | ")} == {rule.count("|") - 2}
    for kind, row in zip(built_in_metrics(), rows, strict=True):
        assert f"| `{kind.__name__}` | `{kind.name}` |" in row
        assert not row.endswith("|  |"), f"{kind.__name__} has no docstring"


def test_every_metric_is_in_a_group_once() -> None:
    """Metrics that ask neither a judge nor an embedder come first."""
    _, _, *rows = table_by_needs()
    for kind in built_in_metrics():
        assert sum(f"`{kind.__name__}`" in row.split(" | ")[2] for row in rows) == 1
    asks = [row.split(" | ")[1] == "nobody" for row in rows]
    assert asks == sorted(asks, reverse=True)


@pytest.mark.parametrize(
    ("kind", "column", "cell"),
    [
        (AnswerRelevancy, "asks", "a judge, an embedder"),
        (AnswerRelevancy, "needs", "`user_input`, `response`"),
        (AnswerRelevancy, "helper", "`assert_answer_relevant(question, response)`"),
        # it could be given an embedder, and has no use for it
        (Relevance, "asks", "a judge"),
        (SemanticSimilarity, "asks", "an embedder"),
        (Harmfulness, "better", "lower"),
        (Harmfulness, "helper", "`assert_aspect(sample, aspect)`"),
        (IDBasedContextRecall, "helper", "`assert_retrieved(retrieved_ids, reference_ids)`"),
        (IDBasedContextRecall, "asks", "nobody"),
    ],
)
def test_cells(kind: type[Metric], column: str, cell: str) -> None:
    """What the classes and the helpers say about themselves."""
    assert cells(kind)[column] == cell


def test_a_metric_of_somebody_else() -> None:
    """Without a helper of its own the one for every metric serves; what would end a cell is escaped."""

    class Mine(Metric):
        """One | two."""

        name = "mine"
        requires = ()

        def measure(self, sample: Sample) -> MetricResult:
            """Return nothing of interest."""
            return MetricResult(1.0, metric=self.name)

    (*_, row) = metric_table([Mine])
    assert row.endswith(r"| see its docstring | `assert_metric(metric, sample)` | nobody | 0 | higher | One \| two. |")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the table."""
    assert cli.main(["metrics"]) == 0
    assert capsys.readouterr().out.splitlines() == metric_table()
    assert cli.main(["metrics", "--by-needs"]) == 0
    assert capsys.readouterr().out.splitlines() == table_by_needs()
