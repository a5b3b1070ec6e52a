"""Names of sources whose objects came from the target itself, or were there before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.core.images.origins import path_of


@dataclass(slots=True)
class OriginNaming:
    """Names of sources: what came through one of them came from the target, or was here before. Empty where nothing
    can have: then nothing is looked at."""

    names: frozenset[str] = frozenset()

    def has(self, parameters: Mapping[str, str] | None) -> bool:
        """Whether an object with these parameters came back."""
        return bool(self.names) and not self.names.isdisjoint(path_of(parameters))
