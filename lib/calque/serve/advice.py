"""The advice about problems: the task of a person, and the command to type. Data, and functions that choose from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from calque.core.records.gap_states import GapState
from calque.model.gaps import GapCause
from calque.model.ledger import TableState
from calque.serve.known_facts import AsideObject

NO_ROOM = "No room to "
"""The beginning of the error of a full disk."""
ERRORS: Sequence[tuple[str, str, str]] = (
    (NO_ROOM, "Make room where its files lie, or add space. It goes on by itself then.", "calque sweep"),
    ("No metastore answers", "Start the metastore, or correct its address. It goes on by itself then.", "calque check"),
    ("Not permitted to ", "Give calque's user that right, or correct the keys and read them again.", "calque reload"),
    ("The certificate of ", "Renew the certificate, or name the authority that signed it.", "calque check"),
    ("The metastore at ", "See what the metastore says. Correct user and password if it refuses them.", "calque check"),
)
"""Beginnings of errors, each with what to do and the command (docs/operations.md, When something fails)."""
OTHER_ERROR = "Do what the error says. It is tried again by itself.", "calque check"

LOST = "See whether they are meant to go; then release the drops."
ADOPT = "Move the object away at the target, or take it over with `calque adopt`; then release the table."
EXCLUDE = "Tables of this kind are not replicated: exclude the table, or make it another kind."
MEND = "Mend the cause that the reason names, then release the table: it is read again."
MEND_OTHER = "Mend the cause that the reason names, then release it."

READ_AGAIN = "It goes on by itself when what it waits for is there. If that never comes, have it read again."
WORKED_ON = "Nothing, as long as the work on it goes on: Flow shows how far it is."

GAP_ADVICE: Mapping[str, tuple[str, str]] = {
    GapState.HELD: ("Look why the source lost objects, then release their drops.", "calque quarantine list"),
    GapState.REPAIRING: ("calque compares the targets with the source by itself.", "calque status"),
    GapState.REPAIRED: ("calque has compared the targets with the source.", "calque verify"),
}
GAP_REASONS: Mapping[str, str] = {
    GapCause.PURGED: "The log was cleaned, or lost rows, before calque had read them.",
    GapCause.WENT_BACK: "The metastore was restored from a backup, or it is another metastore.",
    GapCause.REPEATED: "The log gave one id to two events, so it may miss others.",
    GapCause.FORGOTTEN: "The target was away for longer than the journal keeps events.",
}
GAP_CURES: Mapping[str, str] = {
    GapCause.PURGED: "Have the log keep events for longer than calque may be down.",
    GapCause.WENT_BACK: "See whether it is the source that you mean.",
    GapCause.REPEATED: "Make the log's listener transactional.",
    GapCause.FORGOTTEN: "Make `[journal] retention` longer than a target may be away.",
}


def advice(problem: str) -> tuple[str, str]:
    """Return what to do about the error of a part, and the command to type."""
    return next(((todo, command) for begin, todo, command in ERRORS if problem.startswith(begin)), OTHER_ERROR)


def aside_advice(one: AsideObject) -> tuple[str, str, str]:
    """Return what to do about an object that is set aside, the command to type, and the page's action."""
    selection = f"--target {quote(one.target)} --tables {quote(one.pattern)}"
    if one.is_held:
        return LOST, f"calque release-drops {selection}", "release-drops"
    release = f"calque quarantine release {selection}"
    if one.kind != "table":
        return MEND_OTHER, release, "release"
    if "calque adopt" in one.reason:
        return ADOPT, f"calque adopt {selection}", "release"
    return (EXCLUDE if "transactional" in one.reason else MEND), release, "release"


def late_advice(state: str, target: str, table: str) -> tuple[str, str]:
    """Return what to do about a table that is late, and the command to type."""
    if state == TableState.WAITING:
        return READ_AGAIN, f"calque bootstrap --target {quote(target)} --tables {quote(table)}"
    return WORKED_ON, "calque status"
