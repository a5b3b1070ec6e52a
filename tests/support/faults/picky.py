"""A port that does not take everything, as a target's catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from calque.ports import Catalog
from support.worlds.worlds import World

Objects = Callable[[str, tuple[Any, ...]], Exception | None]
"""What a call of a method with these arguments raises."""


class Picky:
    """`catalog`, where `objects` has nothing against the call."""

    def __init__(self, catalog: object, objects: Objects) -> None:
        self.catalog, self.objects = catalog, objects
        self.raised: list[str] = []

    def __getattr__(self, method: str) -> Any:
        effect = getattr(self.catalog, method)

        def called(*arguments: Any, **named: Any) -> Any:
            if (error := self.objects(method, arguments)) is not None:
                self.raised.append(method)
                raise error
            return effect(*arguments, **named)

        return called


def picky(world: World, objects: Objects) -> Picky:
    """The world's target takes from now on only what `objects` has nothing against."""
    found = Picky(world.side.catalog, objects)
    world.side = replace(world.side, catalog=cast(Catalog, found))
    world.restart_replica(world.ledger)
    return found
