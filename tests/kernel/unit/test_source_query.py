"""The query of a source that can't begin: it is tried again once, with a checkpoint made anew."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from calque.adapters.spark.query import CheckpointUnusable
from calque.errors import CalqueError, Refused, Unavailable
from calque.streams import source_query
from calque.streams.source_query import SourceQuery

CHECKPOINT = "file:/state/checkpoints/capture"
UNBEGUN = CheckpointUnusable("The query ended before it began", "It can't read its offsets", "Report this")


class EndedQuery:
    """A query that is over before it began: stopped, or with an error."""

    active = False

    def __init__(self, error: CalqueError | None) -> None:
        self.error = error

    def has_begun(self) -> bool:
        return False

    def join(self, _seconds: float) -> bool:
        if self.error is not None:
            raise self.error
        return True


class Site:
    """Follows a stream again and again. `done` is what became of queries and checkpoints."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.is_halted = False
        run: Any = SimpleNamespace(starting=threading.Lock(), spark=lambda: None)
        self.query = SourceQuery(run, "capture", lambda: self.is_halted)
        self.error: CalqueError | None = None
        monkeypatch.setattr(source_query, "start", self.start)
        monkeypatch.setattr(source_query, "discard", lambda _, path: self.done.append(f"discard {path}"))

    def start(self, *_: object, checkpoint: str | None, name: str) -> EndedQuery:
        self.done.append(f"{name} from {checkpoint}")
        return EndedQuery(self.error)

    def follow(self, error: CalqueError | None = None, checkpoint: str | None = CHECKPOINT) -> list[str]:
        self.done.clear()
        self.error = error
        stream: Any = None
        self.query.follow(stream, print, checkpoint)
        return self.done


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(monkeypatch)


def test_a_checkpoint_is_kept_from_query_to_query(site: Site) -> None:
    assert [site.follow() for _ in range(2)] == [[f"capture from {CHECKPOINT}"]] * 2


def test_a_query_that_did_not_begin_begins_once_more_with_a_checkpoint_made_anew(site: Site) -> None:
    with pytest.raises(Unavailable, match=r"did not begin.*It can't read its offsets"):
        site.follow(UNBEGUN)
    assert site.follow() == [f"discard {CHECKPOINT}", f"capture from {CHECKPOINT}"]
    assert site.follow() == [f"capture from {CHECKPOINT}"]
    with pytest.raises(CheckpointUnusable):
        site.follow(UNBEGUN)


def test_a_query_without_a_checkpoint_has_none_to_make_anew(site: Site) -> None:
    with pytest.raises(Unavailable):
        site.follow(UNBEGUN, checkpoint=None)
    assert site.follow(checkpoint=None) == ["capture from None"]


def test_one_whose_offsets_are_the_log_s_no_more_begins_anew_and_one_that_was_refused_does_not(site: Site) -> None:
    site.query.begins_anew = True
    assert site.follow() == [f"discard {CHECKPOINT}", f"capture from {CHECKPOINT}"]
    with pytest.raises(Refused):
        site.follow(Refused("The journal is another's", "It has another source", "Name it"))
    assert site.follow() == [f"capture from {CHECKPOINT}"]


def test_one_that_is_stopped_while_it_begins_is_not_taken_for_damaged(site: Site) -> None:
    site.is_halted = True
    with pytest.raises(CheckpointUnusable):
        site.follow(UNBEGUN)
    assert not site.query.begins_anew
