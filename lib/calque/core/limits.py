"""What a catalog's declaration rules out before a call is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from calque.errors import Refused
from calque.model.policy import TargetCapabilities

T = TypeVar("T")
ListOperation = Literal["add_partitions", "alter_partitions", "drop_partitions"]
"""The operations that take a list, by the names of their limits."""


def check_list(operation: str, count: int, limit: int) -> None:
    """`Refused` for a list of more objects than one call takes."""
    if count > limit:
        raise Refused(
            f"{operation} of {count} objects is not sent",
            f"This catalog takes at most {limit} in one call",
            "Make several calls",
        )


def lowered(abilities: TargetCapabilities, operation: ListOperation, count: int) -> TargetCapabilities:
    """What a catalog can do that did not take a list of `count` objects, two or more: half as many at once."""
    return replace(abilities, limits=replace(abilities.limits, **{operation: count // 2}))


def check_commit(any_difference: bool) -> None:
    """`Refused` where a catalog can't commit any difference of a table."""
    if not any_difference:
        raise Refused(
            "commit_table is not sent",
            "This catalog has no commit of any difference of a table",
            "Make the calls that it declares",
        )


def batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
