"""Calls with a list of partitions, in as few calls as the target's catalog takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from calque.core.plan.limits import ListOperation
from calque.ports import Catalog, TooLarge

T = TypeVar("T")


def nobody_minds() -> None:
    """Do nothing before a part of a list is sent: readers may see this list half-way."""


def send_list(
    catalog: Catalog,
    operation: ListOperation,
    send: Callable[[Sequence[T]], None],
    objects: Sequence[T],
    in_parts: Callable[[], None] = nobody_minds,
) -> None:
    """Call `send` with the objects, in as few pieces as the catalog takes for the `operation`; after `TooLarge` with
    its new limit. `in_parts` is called before a call that leaves a part of the list for later calls."""
    sent = 0
    while sent < len(objects):
        batch = objects[sent : sent + getattr(catalog.abilities().limits, operation)]
        if len(batch) < len(objects):
            in_parts()
        try:
            send(batch)
        except TooLarge:
            continue
        sent += len(batch)
