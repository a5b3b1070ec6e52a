"""Configuration → world: one wiring for each source and for each target, over one state folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from calque.adapters.control import ControlStore
from calque.adapters.delta.ledger import DeltaLedger
from calque.config import Config
from calque.config.plugs import Channel, HiveSource, HiveTarget, Source, Target
from calque.engine.lease.fence import Fence, FencedHit
from calque.plugins.clusters.wiring.cluster import ClusterWiring
from calque.plugins.clusters.wiring.secondary_tables import with_secondary_tables
from calque.plugins.notices.wiring import ChannelWiring
from calque.plugins.remotes.wiring.remotes import RemotesWiring, remotes_of
from calque.wiring.runtime import Runtime
from calque.wiring.source import SourceWiring
from calque.wiring.state_folder import StateFolder
from calque.wiring.target import TargetWiring


@dataclass(slots=True)
class Wiring:
    """Everything that a configuration names, with what statements said of its targets' tables. Nothing connects before
    it is used."""

    config: Config
    runtime: Runtime = field(default_factory=Runtime)
    sources: Mapping[str, SourceWiring] = field(init=False)
    """By their names, as in the configuration."""
    targets: Mapping[str, TargetWiring] = field(init=False)
    channels: Mapping[str, ChannelWiring] = field(init=False)
    clusters: Mapping[str, ClusterWiring] = field(init=False)
    deployments: tuple[Wiring, ...] = field(init=False)
    """What has the sources and targets of the clusters: this wiring where it has some, and others."""

    def __post_init__(self) -> None:
        self.config = with_secondary_tables(self.config, self.control)
        self.sources = {name: self._wire_source(plug) for name, plug in self.config.sources.items()}
        self.targets = {name: self._wire_target(plug) for name, plug in self.config.targets.items()}
        self.channels = {name: self._wire_channel(plug) for name, plug in self.config.channels.items()}
        self.clusters = {name: ClusterWiring(plug) for name, plug in self.config.clusters.items()}
        others = tuple(Wiring(deployment, self.runtime) for deployment in self.config.deployments)
        self.deployments = (self, *others) if self.config.sources else others

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

    def _wire_channel(self, plug: Channel) -> ChannelWiring:
        target = None if plug.is_at_source() else self.targets[plug.at]
        return ChannelWiring(plug, self.sources[plug.source], target, self.folder, self.runtime)

    @property
    def folder(self) -> StateFolder:
        return StateFolder(self.config.state, self.runtime.guard)

    @property
    def state(self) -> Path:
        """The state folder's path."""
        return self.folder.path

    @property
    def control(self) -> ControlStore:
        return self.folder.control

    def behind(self, fence: Fence) -> Wiring:
        """The same, whose effects begin only where the fence permits it."""
        return Wiring(self.config, Runtime(self.runtime.session, FencedHit(fence, self.runtime.hit)))

    def remotes(self) -> RemotesWiring:
        """Raises `Refused` for a configuration without `[remotes]`."""
        return remotes_of(self.config, self.runtime)

    def channel(self, name: str) -> ChannelWiring:
        """Raises `Refused` for one that the configuration does not have."""
        return self.channels[self.config.channel(name).name]

    def only_source(self) -> SourceWiring:
        """See `Config.only_source`."""
        return self.sources[self.config.only_source().name]

    def target(self, name: str) -> TargetWiring:
        """Raises `Refused` for one that the configuration does not have."""
        return self.targets[self.config.target(name).name]

    def ledger(self, target: str) -> DeltaLedger:
        return self.target(target).ledger()
