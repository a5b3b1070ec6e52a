"""Limits of a target's catalog: calls that its declaration rules out are refused before they are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Literal, TypeVar

from calque.errors import Refused
from calque.model.policy import Limits, TargetCapabilities

T = TypeVar("T")
HIDDEN_BATCH = 1000
"""Partitions in one call about a table under a hidden name. Many such calls run side by side, on several connections,
because servers spend most of their time on each partition."""
ListOperation = Literal["add_partitions", "alter_partitions", "drop_partitions"]
"""The operations that take a list, by the names of their limits."""


def check_list(operation: str, count: int, limit: int) -> None:
    """Raise `Refused` for a list of more objects than one call takes."""
    if count > limit:
        raise Refused(
            f"{operation} of {count} objects is not sent",
            f"This catalog takes at most {limit} in one call",
            "Make several calls",
        )


def lowered(abilities: TargetCapabilities, operation: ListOperation, count: int) -> TargetCapabilities:
    """Return the abilities of a catalog that did not take a list of `count` objects, two or more: half as many in one
    call."""
    return replace(abilities, limits=replace(abilities.limits, **{operation: count // 2}))


def of_hidden(limits: Limits) -> Limits:
    """Return the limits of calls about a table under a hidden name: those of the catalog, and no more than
    `HIDDEN_BATCH` objects in a call."""
    return Limits(**{operation: min(limit, HIDDEN_BATCH) for operation, limit in asdict(limits).items()})


def check_commit(any_difference: bool) -> None:
    """Raise `Refused` unless `any_difference` is True: the catalog declares that one commit may hold every difference
    of a table (`TargetCapabilities.any_difference`)."""
    if not any_difference:
        raise Refused(
            "commit_table is not sent",
            "This catalog has no commit of any difference of a table",
            "Make the calls that it declares",
        )


def batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
