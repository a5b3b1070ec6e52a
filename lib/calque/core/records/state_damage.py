"""What is lost with a damaged part of the state folder, and how calque goes on without it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calque.errors import StateUnusable

READ_AGAIN = "each target is compared with the source, and what differs is read again"
NO_RECORD = "what it said"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the state: `pattern` matches the folder or file that goes as a whole, at the end of its place. What is
    lost with it, and what is done then."""

    pattern: re.Pattern[str]
    lost: str
    then: str


def part(pattern: str, lost: str, then: str) -> Part:
    return Part(re.compile(rf"^(?P<whole>(?:.*/)?{pattern})(?:/.*)?$"), lost, then)


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
    r"(?:^|/)(?:processes/.+|running/.+|sending/.+|windows/.+|capturing|reload|hold/.+|requests/.+)$"
)
"""Records of the moment: whoever needs one does without, and it is written anew or said again."""


def damaged(place: str, why: str) -> StateUnusable:
    """The error for what lies at that place, a file or folder of the state: the bytes can be had, and say nothing."""
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
    """Whether calque goes on without the control record of that name."""
    return WITHOUT_RECORD.search(record) is not None
