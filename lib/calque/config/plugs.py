"""What a configuration plugs into calque: a closed union of values, each made from the sections of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never

from pydantic import BaseModel

from calque.config import keys as sections
from calque.config.file import ClustersFile, File, FileOfLinks
from calque.config.secret_keys import secret_files
from calque.config.serve_keys import Serve, ServeTls
from calque.core.formats.roots import Roots, roots_of
from calque.core.policy.admit import Admission
from calque.errors import Refused, nearest
from calque.model.access import MetastoreAccess, SshRoute
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.state_places import SourcePlaces
from calque.plugins.clusters.config.sections import Cluster as ClusterSection
from calque.plugins.clusters.config.sections import Clusters as ClustersSection
from calque.plugins.clusters.model import Clusters
from calque.plugins.notices.config import Notices
from calque.plugins.remotes.config import Remotes
from calque.plugins.remotes.model import Endpoint
from calque.plugins.remotes.ports import RemoteAccess, RemoteCatalog, RemoteClient


@dataclass(frozen=True, slots=True)
class LookedCatalog:
    """A catalog without a log, as a client reaches it, and every how many seconds it is looked at."""

    client: RemoteClient
    settings: Mapping[str, str]
    access: RemoteAccess
    interval: float

    def connect(self) -> RemoteCatalog:
        """Nothing is asked before the catalog is used."""
        return self.client.connect(self.settings, self.access)


@dataclass(frozen=True, slots=True)
class HiveSource:
    """A Hive metastore whose log is captured into a journal. `places` says where its state lies. One that links made a
    source has an `endpoint`; with `far_only` nothing near is connected to, whatever its names lead to. With a `route`
    it is reached over SSH. Where it is a `catalog` without a log, the log is our own. `private` are places of calque's
    own, `readable` those of its own where dumps lie."""

    name: str
    keys: sections.Source
    journal: sections.Journal
    places: SourcePlaces
    endpoint: Endpoint | None = None
    far_only: bool = False
    route: SshRoute | None = None
    catalog: LookedCatalog | None = None
    private: tuple[str, ...] = field(default=(), compare=False)
    readable: tuple[str, ...] = ()

    def roots(self, *own: str) -> Roots:
        """What is read of what the source's definitions name; `own` are places where calque writes data."""
        return roots_of(self.keys.roots, self.private, (*self.readable, *own))

    def access(self) -> MetastoreAccess:
        """As whom, and how, the metastore is called."""
        return replace(self.keys.access(), far_only=self.far_only, route=self.route)

    def topic(self) -> str:
        """The journal's topic: `<source name>.events` unless the file names one."""
        return self.journal.topic or f"{self.name}.events"


@dataclass(frozen=True, slots=True)
class HiveTarget:
    """A Hive metastore that follows the source of that name. `written` are the keys as the file has them, where
    statements have changed some (`plugins.clusters.config.secondary_tables`). A projection has `links`: local names,
    each with the parameters that make the object a link."""

    name: str
    source: str
    keys: sections.Target
    written: sections.Target | None = field(default=None, compare=False)
    links: Mapping[TableName, Mapping[str, str]] | None = None

    def policy(self) -> Policy:
        """What the target takes."""
        return Policy(
            target=self.name,
            source=self.source,
            include=self.keys.include,
            exclude=self.keys.exclude,
            rename=self.keys.rename,
            properties=self.keys.properties,
            warehouse=self.keys.warehouse,
            external_base=self.keys.external_base,
            locations=self.keys.locations,
            strict_locations=self.keys.strict_locations,
            start=self.keys.start,
            consistency=self.keys.consistency,
            atomicity=self.keys.atomicity,
            appends=self.keys.appends,
            data=self.keys.data,
            format=self.keys.format,
            partitions=self.keys.partitions,
            where=self.keys.where,
            drops=self.keys.drops,
            grace=self.keys.grace,
            max_drop=self.keys.max_drop,
            lease=self.keys.lease,
            bandwidth=self.keys.bandwidth,
            compact=self.keys.small_files(),
            permissions=self.keys.permissions,
            grants=self.keys.grants,
        )

    def admission(self) -> Admission:
        """The policy's names, ready to be asked."""
        return Admission(self.policy())


@dataclass(frozen=True, slots=True)
class NoticeChannel:
    """What is announced of the source of that name. `at` is `source`, or the target at which it is visible then."""

    name: str
    source: str
    keys: Notices

    @property
    def at(self) -> str:
        return self.keys.at

    def is_at_source(self) -> bool:
        return self.keys.at == AT_SOURCE


@dataclass(frozen=True, slots=True)
class HiveCluster:
    """A Hive metastore, and the engine that processes statements over its tables; an empty address for none."""

    name: str
    keys: ClusterSection

    @property
    def engine(self) -> str:
        return self.keys.engine


AT_SOURCE = "source"
Source = HiveSource
"""What is captured."""
Target = HiveTarget
"""What follows a source."""
Channel = NoticeChannel
"""What announces."""
Cluster = HiveCluster
"""What processes statements."""
Plug = Source | Target | Channel | Cluster


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration, valid as a whole. Every target follows one of the sources; both are known by their names. There
    is a source where there are no clusters."""

    path: Path = field(compare=False)
    """Of the file that it was read from, absolute."""
    sources: Mapping[str, Source]
    targets: Mapping[str, Target]
    state: sections.State
    window: sections.Window
    serve: Serve
    log: sections.Log
    repl: sections.Repl
    done: sections.Done
    channels: Mapping[str, Channel] = field(default_factory=dict)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    resolution: ClustersSection | None = None
    """How statements choose among the clusters; None where there are none."""
    deployments: tuple[Config, ...] = ()
    """Configurations of which the clusters' sources and targets are, besides this one."""
    remotes: Remotes | None = None

    def own_sources(self) -> tuple[str, ...]:
        """Those that the file names, without those that links made sources."""
        return tuple(name for name, source in self.sources.items() if source.endpoint is None)

    def own_targets(self) -> tuple[str, ...]:
        """Those that the file names, without projections of links."""
        return tuple(name for name, target in self.targets.items() if target.links is None)

    def target(self, name: str) -> Target:
        """Raises `Refused` with the nearest name."""
        self.select((name,))
        return self.targets[name]

    def source_of(self, target: str) -> Source:
        """The source that the target follows. Raises `Refused` for an unknown target."""
        return self.sources[self.target(target).source]

    def only_source(self) -> Source:
        """The one that a file holds, for what speaks of one source: an event id, `calque journal`. Raises `Refused`
        where there are several, or none."""
        self.require_source()
        names = self.own_sources()
        if len(names) > 1:
            what = "It is not said which source is meant"
            raise Refused(
                what, f"There are several: {', '.join(sorted(names))}", "Use a configuration with one of them"
            )
        if not names:
            raise Refused("There is no source", "The configuration has links only", "Add a section [source]")
        return self.sources[names[0]]

    def require_source(self) -> None:
        """Raises `Refused` for a file that has clusters alone."""
        if not self.sources and self.remotes is None:
            todo = "Name a configuration with a source and targets"
            raise Refused(f"{self.path} has no [source]", "It has [clusters] alone, which replicate nothing", todo)

    def require_clusters(self) -> Clusters:
        """The clusters as statements choose among them. Raises `Refused` where the file has none."""
        keys = self.resolution
        if keys is None:
            todo = "Add [clusters], and a section [clusters.NAME] for each"
            raise Refused("The configuration has no [clusters]", "They say where statements may run", todo)
        return Clusters(tuple(self.clusters), keys.default, keys.use_default, keys.enabled, keys.max_lag)

    def cluster(self, name: str) -> Cluster:
        """Raises `Refused` with the nearest name."""
        self.require_clusters()
        if name not in self.clusters:
            todo = "Name a section [clusters.NAME] of the configuration"
            raise Refused(f'There is no cluster "{name}"', nearest(name, self.clusters), todo)
        return self.clusters[name]

    def sections(self) -> Iterator[BaseModel]:
        """All of the file."""
        yield from (self.state, self.window, self.serve, self.log, self.repl, self.done)
        if self.remotes is not None:
            yield from (self.remotes, *self.remotes.credentials.values())
        for source in self.sources.values():
            yield from (source.keys, source.journal)
        yield from (target.keys for target in self.targets.values())
        yield from (channel.keys for channel in self.channels.values())
        if self.resolution is not None:
            yield self.resolution
        yield from (cluster.keys for cluster in self.clusters.values())

    def targets_of(self, source: str) -> tuple[str, ...]:
        """The targets that follow the source."""
        return tuple(name for name, target in self.targets.items() if target.source == source)

    def channel(self, name: str) -> Channel:
        """Raises `Refused` with the nearest name."""
        if name not in self.channels:
            todo = "Name a section [notices.NAME] of the configuration"
            raise Refused(f'There is no channel "{name}"', nearest(name, self.channels), todo)
        return self.channels[name]

    def channels_at(self, place: str) -> tuple[Channel, ...]:
        """Those at `source`, or at the target of that name."""
        return tuple(channel for channel in self.channels.values() if channel.at == place)

    def select(self, names: Iterable[str]) -> tuple[str, ...]:
        """The named targets, each once, or all when none is named. Raises `Refused` for an unknown one."""
        chosen_names = tuple(dict.fromkeys(names))
        for name in chosen_names:
            if name not in self.targets:
                todo = "Name a target of the configuration"
                raise Refused(f'There is no target "{name}"', nearest(name, self.targets), todo)
        return chosen_names or tuple(self.targets)


KEY_FILES = ("key.location", "keystore.location", "keytab")
"""Ends of the names of options that name files of keys."""


def is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/")


def config_of(path: Path, file: File | FileOfLinks | ClustersFile, deployments: tuple[Config, ...] = ()) -> Config:
    """The file's sections as plugs, over the deployments that its clusters name."""
    sources: dict[str, Source] = {}
    targets: dict[str, Target] = {}
    channels: dict[str, Channel] = {}
    clusters: dict[str, Cluster] = {}
    for plug in plugs_of(file):
        match plug:
            case HiveSource():
                sources[plug.name] = plug
            case HiveTarget():
                targets[plug.name] = plug
            case NoticeChannel():
                channels[plug.name] = plug
            case HiveCluster():
                clusters[plug.name] = plug
            case _:
                assert_never(plug)
    window, serve, repl, done = (
        (sections.Window(), Serve(), sections.Repl(), sections.Done())
        if isinstance(file, ClustersFile)
        else (file.window, file.serve, file.repl, file.done)
    )
    config = Config(
        path,
        sources,
        targets,
        file.state,
        window,
        serve,
        file.log,
        repl,
        done,
        channels,
        clusters,
        file.clusters,
        deployments,
        None if isinstance(file, ClustersFile) else file.remotes,
    )
    return replace(config, sources={name: guarded(source, config) for name, source in sources.items()})


def guarded(source: Source, config: Config) -> Source:
    """The source, which does not lend out what is the configuration's own."""
    readable = tuple(filter(None, (config.repl.root, source.keys.pins)))
    return replace(source, private=tuple(private_places(config)), readable=readable)


def private_places(config: Config) -> Iterator[str]:
    """What no definition has calque read: the configuration, its secrets, state and checkpoints."""
    state = config.state
    yield from dict.fromkeys((str(config.path), state.path, state.checkpoints, state.table_folder()))
    yield from (file.path for file in secret_files(config.sections()))
    for key, value in (pair for section in config.sections() for pair in section):
        if key == "private_keys":
            yield from value
        elif isinstance(value, sections.TlsSection | ServeTls) and value.key:
            yield value.key
        elif isinstance(value, Mapping):
            yield from (str(path) for name, path in value.items() if name.endswith(KEY_FILES) and is_path(path))
    for deployment in config.deployments:
        yield from private_places(deployment)


def plugs_of(file: File | FileOfLinks | ClustersFile) -> Iterator[Plug]:
    """Each section that plugs something in, in the order of the file's model."""
    if not isinstance(file, ClustersFile) and file.source is not None:
        yield HiveSource(file.source.name, file.source, file.journal, SourcePlaces())
        for name, target in file.targets.items():
            yield HiveTarget(name, file.source.name, target)
        for name, channel in file.notices.items():
            yield NoticeChannel(name, file.source.name, channel)
    for name, cluster in (file.clusters.named if file.clusters is not None else {}).items():
        yield HiveCluster(name, cluster)
