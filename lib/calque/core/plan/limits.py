"""What a catalog's declaration rules out before a call is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Literal, TypeVar

from calque.errors import Refused
from calque.model.policy import Limits, TargetCapabilities

T = TypeVar("T")
HIDDEN_BATCH = 1000
"""Partitions that one call is about of a table under a hidden name. It gets many of them by several connections side by
side: servers spend most time on each partition."""
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


def of_hidden(limits: Limits) -> Limits:
    """Those of calls about a table under a hidden name."""
    return Limits(**{operation: min(limit, HIDDEN_BATCH) for operation, limit in asdict(limits).items()})


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
