"""Send a list of partitions in as few calls as the target's catalog takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from calque.core.limits import ListOperation
from calque.ports import Catalog, TooLarge

T = TypeVar("T")


def nobody_sees() -> None:
    """The list is one that readers may see half-way."""


def send_list(
    catalog: Catalog,
    operation: ListOperation,
    send: Callable[[Sequence[T]], None],
    objects: Sequence[T],
    in_parts: Callable[[], None] = nobody_sees,
) -> None:
    """`in_parts` is called where the server takes fewer objects at once than the catalog knew, before the next call."""
    sent = 0
    while sent < len(objects):
        batch = objects[sent : sent + getattr(catalog.abilities().limits, operation)]
        try:
            send(batch)
        except TooLarge:
            in_parts()
        else:
            sent += len(batch)
