"""The live objects of a whole configuration: one wiring for each source and for each target, over one state folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, assert_never

from calque.adapters.control import ControlStore
from calque.adapters.delta.ledger import DeltaLedger
from calque.config import Config
from calque.config.plugs import HiveSource, HiveTarget, Source, Target
from calque.engine.lease.fence import Fence, FencedHit
from calque.wiring.kept import KeptObjects
from calque.wiring.runtime import Runtime
from calque.wiring.source import SourceWiring
from calque.wiring.state_folder import StateFolder
from calque.wiring.target import TargetWiring

T = TypeVar("T")


@dataclass(slots=True)
class Wiring:
    """The live objects of everything that a configuration names. Nothing connects before it is used."""

    config: Config
    runtime: Runtime = field(default_factory=Runtime)
    sources: Mapping[str, SourceWiring] = field(init=False)
    """The wirings of sources by their names, in the order of the configuration."""
    targets: Mapping[str, TargetWiring] = field(init=False)
    _kept: KeptObjects[Wiring] = field(default_factory=KeptObjects, init=False)

    def __post_init__(self) -> None:
        self.sources = {name: self._wire_source(plug) for name, plug in self.config.sources.items()}
        self.targets = {name: self._wire_target(plug) for name, plug in self.config.targets.items()}

    def _wire_source(self, plug: Source) -> SourceWiring:
        match plug:
            case HiveSource():
                return SourceWiring(plug, self.folder, self.runtime)
        assert_never(plug)

    def _wire_target(self, plug: Target) -> TargetWiring:
        leaves = 1 if len(self.config.targets) > 1 else 0
        match plug:
            case HiveTarget():
                return TargetWiring(plug, self.sources[plug.source], self.folder, self.runtime, leaves)
        assert_never(plug)

    def kept(self, make: Callable[[Wiring], T]) -> T:
        """Return the object that a plugin's `make` makes of the wiring, made at the first call and the same one
        later."""
        return self._kept.of(self, make)

    @property
    def folder(self) -> StateFolder:
        return StateFolder(self.config.state, self.runtime.guard, self.runtime.kinds.file_systems)

    @property
    def state(self) -> Path:
        """The path of the state folder."""
        return self.folder.path

    @property
    def control(self) -> ControlStore:
        return self.folder.control

    def behind(self, fence: Fence) -> Wiring:
        """Return a new wiring of the same configuration, whose effects begin only where `fence` permits them."""
        runtime = Runtime(self.runtime.session, FencedHit(fence, self.runtime.hit), kinds=self.runtime.kinds)
        return Wiring(self.config, runtime)

    def afresh(self) -> Wiring:
        """Return a new wiring of the same configuration, which opens all objects anew and uses no Spark."""
        return Wiring(self.config, Runtime(kinds=self.runtime.kinds))

    def only_source(self) -> SourceWiring:
        """Return the wiring of `Config.only_source`. Raises `Refused` where the configuration has several sources, or
        none."""
        return self.sources[self.config.only_source().name]

    def target(self, name: str) -> TargetWiring:
        """Return the wiring of the target. Raises `Refused` for a target that the configuration does not have."""
        return self.targets[self.config.target(name).name]

    def ledger(self, target: str) -> DeltaLedger:
        return self.target(target).ledger()
