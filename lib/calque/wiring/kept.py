"""The store of live objects that plugins make of a source, a target or a whole wiring, each made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

Owner = TypeVar("Owner")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeptObjects(Generic[Owner]):
    """The live objects of one owner, by the functions that make them."""

    objects: dict[Callable[[Owner], Any], Any] = field(default_factory=dict)

    def of(self, owner: Owner, make: Callable[[Owner], T]) -> T:
        """Return the object that `make` makes of the owner. It is made at the first call, and the same one is returned
        at each later call."""
        if make not in self.objects:
            self.objects[make] = make(owner)
        return cast("T", self.objects[make])
