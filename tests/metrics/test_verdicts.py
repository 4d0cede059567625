"""What is looked for in the sentences that a judge cites."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.metrics.verdicts import missing_from, place_in


@pytest.mark.parametrize(
    ("claim", "sentences", "missing"),
    [
        ("It cost 1,200 euros.", ["The price was 1200 €."], []),
        ("It cost 1,300 euros.", ["The price was 1200 €."], ["1,300 euros"]),
        ("It opened in March 1998.", ["Opening day: 5 March 1998."], []),
        ("It opened on 6 March 1998.", ["Opening day: 5 March 1998."], ["6 March 1998"]),
        ("A third of them left.", ["Some left."], []),
        ("The mayor was Ada Novak.", ["Novak became mayor."], ["Ada Novak"]),
        ("The mayor was Novak.", ["Ada Novak became mayor."], []),
        ("They moved to Oslo in 1950.", ["They moved there in 1950.", "Oslo is cold."], []),
        ("They moved to Oslo in 1950.", [], ["1950", "Oslo"]),
        ("It is one of the highest.", ["It is among the highest."], []),
        ("Der Turm ist 96 m hoch.", ["Er ist 90 m hoch."], ["96"]),
        ("يبلغ ارتفاع البرج ٩٦ مترا.", ["ارتفاعه 90 مترا."], ["٩٦"]),
        ("Nothing to look for.", [], []),
    ],
)
def test_numbers_and_names_are_looked_for(claim: str, sentences: list[str], missing: list[str]) -> None:
    """However they are written, and in all cited sentences together."""
    assert list(missing_from(claim, sentences)) == missing


@pytest.mark.parametrize(
    ("response", "text", "place"),
    [
        ("Moths fly.", "Moths fly.", (0, 10)),
        ("So moths fly, too.", "moths fly.", (3, 12)),
        ("Mammoths fly.", "moths fly.", None),
        ("Moths flying.", "Moths fly.", None),
        ("Costs (net): 5 €.", "Costs (net): 5 €.", (0, 17)),
        ("蛾在夜间飞行。", "蛾在夜间飞行。", (0, 7)),
        ("...", "...", (0, 3)),
        ("Moths fly.", "...", None),
        ("", "Moths.", None),
    ],
)
def test_places_are_those_of_whole_words(response: str, text: str, place: tuple[int, int] | None) -> None:
    """A claim taken over word for word is found, signs of patterns in it mean nothing."""
    assert place_in(response, text) == place
