"""The decisions in `docs/decisions`: index and rooms agree, and every decision that is cited exists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from support.places import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = FOLDER / "index.md"
ROOMS = tuple(sorted(page for page in FOLDER.glob("*.md") if page != INDEX))
CITING = (ROOT / "README.md", *(ROOT / folder for folder in ("lib", "docs", "tests")))
TEXTS = {".lark", ".md", ".py", ".toml", ".txt"}

HEADING = re.compile(r"^## (\d+)\. (.+)\n\n((?:.+\n)+)", re.MULTILINE)
"""The number and the title of a decision, and its paragraph of status and date."""
ROW = re.compile(r"^\| (\d+) \| \[(.+)\]\((\w+)\.md#\S*\) \| (\w+) \| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\[(\d+)\]\([^)]*\)")
NUMBERS = r"\d+(?:, \d+)*"
STATUS = re.compile(rf"(?:Holds|Superseded(?: in part)? by {NUMBERS})(?:; extended by {NUMBERS})?")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
CITATION = re.compile(r"\b[Dd]ecisions?\s+(\d+(?:(?:, | and | to )\d+)*)")


@dataclass(frozen=True, slots=True)
class Decision:
    """What a decision's heading and status say, or its row in the index."""

    number: int
    title: str
    room: str
    status: str

    def successors(self) -> list[int]:
        """Return the decisions that supersede or extend it."""
        return [int(number) for number in re.findall(r"\d+", self.status)]


def plain(status: str) -> str:
    """Return the status of a room's page as the index has it: without links, in one line."""
    return " ".join(LINK.sub(r"\1", status).split()).replace(" and ", ", ")


def status_and_date(paragraph: str) -> tuple[str, str]:
    status, _, date = plain(paragraph).rpartition(". ")
    return status, date


def decisions_in(page: Path) -> list[Decision]:
    found = HEADING.findall(page.read_text(encoding="utf-8"))
    return [Decision(int(number), title, page.stem, status_and_date(below)[0]) for number, title, below in found]


def headings(page: Path) -> list[str]:
    return re.findall(r"^## .+$", page.read_text(encoding="utf-8"), re.MULTILINE)


def rows() -> list[Decision]:
    """Return the decisions of the index, in its order. Raises `AssertionError` where a row links to another room."""
    found = []
    for number, title, linked, room, status in ROW.findall(INDEX.read_text(encoding="utf-8")):
        assert linked == room, number
        found.append(Decision(int(number), title, room, status))
    return found


def cited(text: str) -> set[int]:
    """Return the numbers of the decisions that the text cites."""
    return {int(number) for numbers in CITATION.findall(text) for number in re.findall(r"\d+", numbers)}


def citing_files() -> Iterator[Path]:
    for place in CITING:
        yield from [place] if place.is_file() else (file for file in place.rglob("*") if file.suffix in TEXTS)


DECISIONS = [decision for page in ROOMS for decision in decisions_in(page)]
KNOWN = {decision.number for decision in DECISIONS}


def test_the_index_has_the_decisions_of_the_rooms_with_their_titles_and_states() -> None:
    assert rows() == sorted(DECISIONS, key=lambda decision: decision.number)


def test_no_number_stands_twice() -> None:
    assert [number for number, count in Counter(one.number for one in DECISIONS).items() if count > 1] == []


@pytest.mark.parametrize("page", ROOMS, ids=lambda page: page.stem)
def test_a_room_has_its_decisions_in_the_order_of_their_numbers(page: Path) -> None:
    found = decisions_in(page)
    assert len(found) == len(headings(page)) > 0
    assert all(one.number < next_.number for one, next_ in pairwise(found))


@pytest.mark.parametrize("page", ROOMS, ids=lambda page: page.stem)
def test_every_decision_of_a_room_says_its_status_and_its_date(page: Path) -> None:
    said = [status_and_date(below) for _, _, below in HEADING.findall(page.read_text(encoding="utf-8"))]
    assert [one for one in said if not (STATUS.fullmatch(one[0]) and DATE.fullmatch(one[1]))] == []


def test_what_supersedes_or_extends_a_decision_exists_and_is_later() -> None:
    wrong = {
        decision.number: [other for other in decision.successors() if other not in KNOWN or other < decision.number]
        for decision in DECISIONS
    }
    assert {number: others for number, others in wrong.items() if others} == {}


def test_every_decision_that_is_cited_exists() -> None:
    unknown = {file: cited(file.read_text(encoding="utf-8", errors="replace")) - KNOWN for file in citing_files()}
    assert {str(file.relative_to(ROOT)): numbers for file, numbers in unknown.items() if numbers} == {}


def test_citations_are_seen_in_their_forms() -> None:
    word = "decision"
    assert cited(f"See {word} 12, and {word.title()}s 3, 4 and 5; {word}\n7's cost.") == {3, 4, 5, 7, 12}
    assert cited(f"12 {word}s, {word} by 9") == set()


def test_the_status_of_a_page_is_compared_without_its_links() -> None:
    below = "Superseded in part by [7](log.md#7-a); extended by [8](#8-b)\nand [9](#9-c). 2026-11-30\n"
    assert status_and_date(below) == ("Superseded in part by 7; extended by 8, 9", "2026-11-30")
    assert Decision(1, "", "log", status_and_date(below)[0]).successors() == [7, 8, 9]


def test_every_room_is_on_the_site() -> None:
    _, _, listed = INDEX.read_text(encoding="utf-8").partition("```{toctree}\n:hidden:\n\n")
    assert sorted(listed.removesuffix("```\n").split()) == [page.stem for page in ROOMS]
