"""Damage of the state folder: for each part, the information that is lost with it, and how calque goes on without
it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calque.errors import StateUnusable

READ_AGAIN = "each target is compared with the source, and what differs is read again"
NO_RECORD = "what it said"


@dataclass(frozen=True, slots=True)
class StateFolderPart:
    """A part of the state folder. `pattern` matches the place of a file or folder in it; its group `whole` is the
    folder or file that is removed when a piece of it is damaged. `lost` says which information goes with it, `then` how
    calque goes on."""

    pattern: re.Pattern[str]
    lost: str
    then: str


def part(pattern: str, lost: str, then: str) -> StateFolderPart:
    return StateFolderPart(re.compile(rf"^(?P<whole>(?:.*/)?{pattern})(?:/.*)?$"), lost, then)


PARTS = (
    part(r"ledgers/[^/]+/history", "what was kept of epochs that the ledger has forgotten", "the rest goes on"),
    part(
        r"ledgers/[^/]+",
        "the target's epochs, what was set aside or held back there, and which functions are calque's",
        READ_AGAIN,
    ),
    part(r"loads/[^/]+/[^/]+", "which dumps of the database were loaded", "load a dump of all of it (REPL LOAD) again"),
    part(
        r"journal",
        "events that a target does not show yet and that the source's log has forgotten",
        "what the log still has is read from it, and for the rest tables are read again",
    ),
    part(r"evidence", "which files belonged to states that are over", "targets pass these states over"),
    part(r"scans", "what scans have found, and not yet told", "the next scans look at everything again"),
    part(r"marks", "the marks of this folder, which no other place has", "set them again: `calque done mark`"),
    part(r"history", "what was kept of events that the journal has forgotten", "the rest goes on"),
    part(r"looks\.sqlite", "what was seen of the remote catalog", "its objects are read again"),
    part(r"audit", "what was recorded of statements", "the rest goes on"),
    part(r"control/(?:sources/[^/]+/)?journal\.json", "where the journal began", "it goes on where it ends"),
    part(r"control/identity\.json", "the folder's name", "`calque run` gives it another one"),
    part(r"control/paused/[^/]+\.json", "that the target is held back", "it is not held back any more"),
    part(r"control/paused-tables/[^/]+\.json", "which tables are held back", "none is held back any more"),
    part(r"control/secondary-tables/[^/]+\.json", "what statements said of tables there", "say it again"),
    part(r"control/sweep/[^/]+\.json", "what the last `calque sweep` has noted", "the next one notes it again"),
    part(r"control/marks-told/[^/]+\.json", "of which marks the metastore was told", "it is told again"),
    part(r"control/notices/[^/]+\.json", "how far the channel has sent", "it begins as a new one does"),
    part(r"control/notice-keys/.+\.json", "keys of tables of which events are gone", "they are read again"),
)
ALL = re.compile(r"^(?P<whole>.*?)/control/")
WITHOUT_RECORD = re.compile(
    r"(?:^|/)(?:processes/.+|running/.+|sending/.+|windows/.+|verified/.+|capturing|reload|hold/.+|requests/.+)$"
)
"""Control records of the moment: their readers do without, and a record is written anew or its request repeated."""


def damaged(place: str, why: str) -> StateUnusable:
    """Return the error for a file or folder of the state at `place` whose bytes can be read and make no sense. It
    advises removing the part of the state that the place belongs to."""
    for known in PARTS:
        if match := known.pattern.match(place):
            return refused(place, match["whole"], known.lost, known.then, why)
    if match := ALL.match(place):
        return refused(place, match["whole"], "all that this folder knows", READ_AGAIN, why)
    return refused(place, place, NO_RECORD, READ_AGAIN, why)


def refused(place: str, whole: str, lost: str, then: str, why: str) -> StateUnusable:
    return StateUnusable(
        f"{place} is damaged",
        why,
        f"Put it back from a copy, or say `{removal_of(whole)}` and start again: lost with it is {lost}; {then}",
    )


def removal_of(whole: str) -> str:
    if "://" in whole:
        return f"remove {whole}"
    return f"rm -r '{whole}'"


def does_without(record: str) -> bool:
    """Tell whether calque goes on without the control record of that name when it is damaged."""
    return WITHOUT_RECORD.search(record) is not None
