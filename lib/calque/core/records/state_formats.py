"""The formats of stored state that a version of calque reads: the one that it writes, and the one before that."""

from __future__ import annotations

from calque.errors import Refused

FIRST_FORMAT = 1
"""The format of stored state that does not name one."""
LEDGER_FORMAT = 2
"""The format of a ledger's rows."""


def require_known_format(what: str, number: int, newest: int, oldest: int | None = None) -> None:
    """Raise `Refused` where `what` has a format that is newer than `newest`, or older than `oldest` (by default the
    format before `newest`). An operator who skips versions goes by one that still takes the old format over."""
    before = oldest or max(FIRST_FORMAT, newest - 1)
    if number > newest:
        raise Refused(
            f"{what} has format {number}",
            f"A newer calque has written it; this one knows formats up to {newest}",
            "Use that version, or a later one",
        )
    if number < before:
        raise Refused(
            f"{what} has format {number}",
            f"An older calque has written it; this one takes over format {before} and no older one",
            f"Let a version that writes format {number + 1} go on with it first, and each one that follows: the change "
            "log tells which they are",
        )
