"""Names of sources whose objects came from the target itself, or were there before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.core.images.origins import path_of


@dataclass(slots=True)
class OriginNameRegistry:
    """The names of sources whose objects came from the target itself, or were there before. No names: no object can
    have come back, and none is examined."""

    names: frozenset[str] = frozenset()

    def has(self, parameters: Mapping[str, str] | None) -> bool:
        """Tell whether an object with these parameters came back: its path of origins has one of the names."""
        return bool(self.names) and not self.names.isdisjoint(path_of(parameters))
