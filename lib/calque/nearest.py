"""The known name nearest to a misspelt one, as a sentence for an error."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """ "The nearest is X", else what is known at all; "" when nothing is. Upper and lower case count as equal."""
    names = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    if found:
        return f"The nearest is {names[found[0]]}"
    return f"Known: {', '.join(names.values())}" if names else ""
