"""The lines that `calque history` draws of a table's events, and the words that commands count."""

from __future__ import annotations

from typing import Any

import pytest

from calque.commands.history import line
from calque.commands.output import tallied
from calque.control.table_history import link_document
from calque.core.records.table_chain import Fate, Link


def drawn(link: Link) -> str:
    return line(link_document(link)).partition(": ")[2]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"why": "gone so far back", "epoch": 3, "published_at": "T"}, "older: gone so far back; epoch 3 at T"),
        ({"why": "gone", "event_time": 86_400}, "older: gone; logged at 1970-01-02T00:00:00+00:00"),
        ({"why": "gone"}, "older: gone"),
    ],
)
def test_an_event_that_is_not_shown_has_its_reason_and_a_time_where_one_is_known(
    fields: dict[str, Any], said: str
) -> None:
    assert drawn(Link(7, "add_partitions", Fate.BEFORE, **fields)) == said


def test_a_hop_of_one_file_is_one_of_one_file() -> None:
    hop = Link(7, "insert", Fate.SHOWN, changes={"add_partition": 1, "alter_partition": 2}, files=1, bytes=5)
    assert drawn(hop) == "shown, add_partition, alter_partition (2), 1 file (5 bytes)"


def test_words_that_come_again_are_counted_in_the_order_in_which_they_came() -> None:
    assert tallied({"b": 1, "a": 3}) == "b, a (3)"
