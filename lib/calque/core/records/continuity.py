"""The rules, for every adapter, of how a journal or a ledger is continued, and of which events a journal has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from calque.core.records.digest import digest_of, sealed
from calque.errors import Broken, EventsForgotten, Refused, Unavailable
from calque.model.gaps import Gap
from calque.model.ledger import Epoch, ObjectRow
from calque.model.names import EventId


def first_and_last(rows: pa.Table) -> tuple[EventId, EventId]:
    """Return the first and the last event id of `rows`, which has at least one row. Raises `Broken` unless ids rise one
    by one."""
    ids = rows["event_id"].to_pylist()
    for before, after in pairwise(ids):
        if after != before + 1:
            raise Broken(
                f"The rows for the journal jump from event {before} to {after}",
                "Its rows must follow one another without a hole",
                "Report this as a defect: capture checks for holes before it appends",
            )
    return ids[0], ids[-1]


def check_continues(last: EventId | None, first: EventId, journal: str, given_up: EventId = 0) -> None:
    """Raise `Broken` unless rows that begin at event `first` continue a journal that ends at event `last` (None: an
    empty one).

    Raises `Unavailable` where the journal may have come that far by an append of the caller's own, up to event
    `given_up`, that was not answered: an append of events 81..90 gets no answer, and when rows from 81 on are appended
    again the journal ends at 90.
    """
    if last is not None and first <= last <= given_up:
        raise Unavailable(
            f"The journal {journal} has events up to {last} already",
            "An append that was given up has arrived after all",
            "The journal's end is looked at anew",
        )
    if last is not None and first != last + 1:
        raise Broken(
            f"The journal {journal} ends at event {last} and can't be continued at event {first}",
            "Another process appended to it, or the log was read from another place than the journal's end",
            "Make sure that one calque only captures into this journal, then start it again",
        )


def check_there(first: EventId, upto: EventId, oldest: EventId, last: EventId) -> None:
    """Raise `Refused` where events from `first` to `upto` are newer than `last`, the journal's newest, and
    `EventsForgotten` where they are older than `oldest`, its oldest."""
    if upto > last:
        raise Refused(
            f"{events(max(first, last + 1), upto)} not in the journal yet",
            f"Its last event is {last}",
            f"Ask for events up to {last}, or wait until capture has appended the others",
        )
    if first < oldest:
        raise EventsForgotten(
            f"{events(first, min(upto, oldest - 1))} not in the journal any more",
            f"Its oldest event is {oldest}; older ones were removed, or never came",
            f"Begin at event {oldest} or later, or have the tables read again (calque bootstrap)",
        )


def next_gap(known_gaps: Sequence[Gap], gap: Gap) -> bool:
    """Tell whether the gap is to be added to the known ones; False when it is known, whenever it was found. Raises
    `Broken` when its number does not follow, or is another gap's."""
    if gap.number == len(known_gaps) + 1:
        return True
    if (
        0 < gap.number <= len(known_gaps)
        and replace(gap, found_at=known_gaps[gap.number - 1].found_at) == known_gaps[gap.number - 1]
    ):
        return False
    raise Broken(
        f"Gap {gap.number} can't follow gap {len(known_gaps)}",
        "Numbers rise one by one, so another process has captured into this state folder",
        "Make sure that one calque only captures, then start it again",
    )


def settled_by(known_gaps: Sequence[Gap], settled: int, number: int) -> int:
    """Return the number of the newest settled gap once gap `number` is settled too. Raises `Broken` when there is no
    such gap."""
    if not 0 < number <= len(known_gaps):
        raise Broken(
            f"Gap {number} is not known",
            f"{len(known_gaps)} gaps were recorded",
            "Make sure that one calque only captures, then start it again",
        )
    return max(settled, number)


def next_epoch(last: Epoch | None, epoch: Epoch, objects: Sequence[ObjectRow]) -> Epoch | None:
    """Return the epoch as it is published after `last`: sealed with its digest. None when it is `last` itself, apart
    from the time of publication. Raises `Broken` when its number does not follow."""
    if last is None or epoch.epoch == last.epoch + 1:
        return sealed(epoch, objects, last)
    republished = replace(epoch, published_at=last.published_at, previous_digest=last.previous_digest)
    if digest_of(republished, objects) == last.digest:
        return None
    raise Broken(
        f"Epoch {epoch.epoch} can't be published after epoch {last.epoch}",
        "Numbers rise one by one, so another process has written to this ledger",
        "Make sure that one calque only replicates to this target, then start it again",
    )


def carries_files(row: ObjectRow) -> bool:
    """Tell whether the row says exactly which files the object has, perhaps none."""
    return bool(row.fingerprint or row.files) or row.delta_version is not None


def events(first: EventId, upto: EventId) -> str:
    return f"Event {first} is" if first == upto else f"Events {first} to {upto} are"
