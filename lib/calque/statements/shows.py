"""Statements that only show what there is, known by their first words."""

from __future__ import annotations

SHOWS = ("SHOW", "HELP")


def is_a_show(text: str) -> bool:
    """Tell whether the text begins with a statement that only shows what there is."""
    return text.lstrip().upper().startswith(SHOWS)
