"""The words that may be written next in a statement, for shells that complete words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from calque.statements.misread import SYMBOLS, Expectation
from calque.statements.split import split

TARGET_FOLLOWS = "AT"


def completions(before: str, targets: Iterable[str], expected_after: Callable[[str], Expectation]) -> Sequence[str]:
    """Return the keywords that may follow the text `before`, and the names of targets where a target may follow.
    `expected_after` says what belongs behind the text of a statement."""
    # A mark behind the text tells whether its last statement has ended.
    pieces, unclosed = split(f"{before}\0")
    if unclosed is not None or not pieces:
        return []
    statement = pieces[-1].text.removesuffix("\0")
    expectation = expected_after(statement)
    if expectation.position < len(statement):
        return []
    names = targets if statement.split()[-1:] and statement.split()[-1].upper() == TARGET_FOLLOWS else ()
    return [*sorted(names), *sorted(expectation.expected - SYMBOLS.keys())]
