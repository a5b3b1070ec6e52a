"""Configuration → world: one wiring for each source and for each target, over one state folder."""

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
    """Everything that a configuration names. Nothing connects before it is used."""

    config: Config
    runtime: Runtime = field(default_factory=Runtime)
    sources: Mapping[str, SourceWiring] = field(init=False)
    """By their names, as in the configuration."""
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
        """What `make` makes of the wiring, made when it is first asked for: live objects of plugins."""
        return self._kept.of(self, make)

    @property
    def folder(self) -> StateFolder:
        return StateFolder(self.config.state, self.runtime.guard, self.runtime.kinds.file_systems)

    @property
    def state(self) -> Path:
        """The state folder's path."""
        return self.folder.path

    @property
    def control(self) -> ControlStore:
        return self.folder.control

    def behind(self, fence: Fence) -> Wiring:
        """The same, whose effects begin only where the fence permits it."""
        runtime = Runtime(self.runtime.session, FencedHit(fence, self.runtime.hit), kinds=self.runtime.kinds)
        return Wiring(self.config, runtime)

    def afresh(self) -> Wiring:
        """The same, opened anew, without what is spread over Spark."""
        return Wiring(self.config, Runtime(kinds=self.runtime.kinds))

    def only_source(self) -> SourceWiring:
        """See `Config.only_source`."""
        return self.sources[self.config.only_source().name]

    def target(self, name: str) -> TargetWiring:
        """Raises `Refused` for one that the configuration does not have."""
        return self.targets[self.config.target(name).name]

    def ledger(self, target: str) -> DeltaLedger:
        return self.target(target).ledger()
