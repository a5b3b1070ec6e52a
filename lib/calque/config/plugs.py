"""The values that a configuration plugs into calque: a closed union of sources and targets, each made from sections of
the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from pydantic import BaseModel

from calque.config import keys as sections
from calque.config.secret_keys import secret_files
from calque.config.sections import FileKinds, KeyPath, SectionKind
from calque.config.serve_keys import Serve, ServeTls
from calque.core.formats.roots import Roots, roots_of
from calque.core.policy.admit import Admission
from calque.errors import Refused, nearest
from calque.model.access import MetastoreAccess, Route
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.state_places import SourcePlaces
from calque.ports import Catalog, CatalogReader, EventLog
from calque.ports.services import MetastoreInfo
from calque.ports.source import ClosableLog

AT_SOURCE = "source"
"""The word that stands for the source where a target could be named."""


class UnloggedCatalog(Protocol):
    """A catalog without a log, which a plugin looks at from time to time. Its changes become a log of calque's own, in
    a file of the state folder. The value can be pickled to other processes."""

    def reader(self) -> CatalogReader:
        """Return a reader of the catalog, which asks nothing before it is used."""

    def log(self, path: Path) -> ClosableLog: ...

    def log_opener(self, path: Path) -> Callable[[], EventLog]:
        """Return a function that opens the log in the file at `path`, also in processes that Spark starts."""


def anytime() -> None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTerms:
    """The terms on which a target's system is called. Times are seconds. `permit` is called ahead of each call that
    changes an object, and may raise."""

    permit: Callable[[], None] = anytime
    connect_timeout: float = 10.0
    call_timeout: float = 600.0
    connections: int = 8


class TargetCatalog(Protocol):
    """The catalog of a system that is no Hive metastore, as a value that can be sent to other processes.

    A plugin's `amendments` add targets that have one, with the keys of the plugin's own section. Nothing is connected
    to before what is opened is used.
    """

    def opened(self, terms: CallTerms) -> Catalog:
        """Return a new catalog, which is called on those terms."""

    def server(self, terms: CallTerms) -> MetastoreInfo:
        """Return the server behind the catalog, for `calque check` and for the look whether it answers."""


@dataclass(frozen=True, slots=True)
class HiveSource:
    """A Hive metastore whose log is captured into a journal.

    `places` says where its state lies. `is_linked` is set where links made it a source. With `far_only` it is never
    connected to an address on this host or near it, whichever way its names resolve. With a `route` it is reached by
    that way. With a `catalog` it has no log, and calque keeps one of its own. `private` are places of calque's own,
    which no definition may have it read; `readable` are those of its own places that may be read, where dumps lie.
    """

    name: str
    keys: sections.Source
    journal: sections.Journal
    places: SourcePlaces
    is_linked: bool = False
    far_only: bool = False
    route: Route | None = None
    catalog: UnloggedCatalog | None = None
    follows_transactions: bool = False
    """Whether some target wants ACID tables."""
    private: tuple[str, ...] = field(default=(), compare=False)
    readable: tuple[str, ...] = ()

    def roots(self, *own: str) -> Roots:
        """Return the rule for which places calque reads that the source's definitions name. `own` are places where
        calque writes data, which may be read, too."""
        return roots_of(self.keys.roots, self.private, (*self.readable, *own))

    def access(self) -> MetastoreAccess:
        """Return the user and the login with which the metastore is called, with its TLS and its route."""
        return replace(self.keys.access(), far_only=self.far_only, route=self.route)

    def topic(self) -> str:
        """Return the journal's topic: `<source name>.events` unless the file names another one."""
        return self.journal.topic or f"{self.name}.events"


@dataclass(frozen=True, slots=True)
class HiveTarget:
    """A Hive metastore that follows the source called `source`.

    `written` are the keys as the file has them, where statements have changed some
    (`plugins.clusters.config.secondary_tables`). A projection has `links`: local names, each with the parameters that
    make the object a link. With a `catalog` the target is that in place of a metastore, and keys that say how a
    metastore is reached mean nothing.
    """

    name: str
    source: str
    keys: sections.Target
    written: sections.Target | None = field(default=None, compare=False)
    links: Mapping[TableName, Mapping[str, str]] | None = None
    catalog: TargetCatalog | None = None

    def policy(self) -> Policy:
        """Return the policy of the target: the objects that it takes, their names there, and how they are kept."""
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
            acid=self.keys.acid,
            transactions=self.keys.transactions,
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
        """Return the policy's rules for names, ready to be asked."""
        return Admission(self.policy())


Source = HiveSource
"""The union of all kinds of sources."""
Target = HiveTarget
"""The union of all kinds of targets."""
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration, valid as a whole, with its sources and targets by their names. Every target follows one of the
    sources. There may be no source where a plugin's section brings sources, or stands alone in the file."""

    path: Path = field(compare=False)
    """The absolute path of the file that it was read from."""
    sources: Mapping[str, Source]
    targets: Mapping[str, Target]
    state: sections.State
    window: sections.Window
    serve: Serve
    log: sections.Log
    parts: Mapping[str, object] = field(default_factory=dict)
    """The sections of plugins by their names. A section that the file can't have is not in it; `section` gives its
    default."""
    kinds: FileKinds = field(default=FileKinds(), compare=False)
    """The kinds of sections that the file was read with."""
    alone: str = ""
    """The name of the only section of a file that replicates nothing; empty for any other file."""
    others: tuple[Config, ...] = ()
    """The further configurations that the file names."""

    def section(self, kind: SectionKind[S]) -> S:
        """Return the value of a plugin's section; its default where the file does not have it."""
        return cast("S", self.parts[kind.name] if kind.name in self.parts else kind.default())

    def own_sources(self) -> tuple[str, ...]:
        """Return the names of sources that the file names, without those that links made."""
        return tuple(name for name, source in self.sources.items() if not source.is_linked)

    def own_targets(self) -> tuple[str, ...]:
        """Return the names of targets that the file names, without projections of links."""
        return tuple(name for name, target in self.targets.items() if target.links is None)

    def target(self, name: str) -> Target:
        """Return the target called `name`. Raises `Refused`, which names the nearest target, for an unknown name."""
        self.select((name,))
        return self.targets[name]

    def source_of(self, target: str) -> Source:
        """Return the source that the target follows. Raises `Refused` for an unknown target."""
        return self.sources[self.target(target).source]

    def only_source(self) -> Source:
        """Return the one source of the file, for commands about one source, such as `calque journal`. Raises `Refused`
        where the file has several, or none."""
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
        """Raise `Refused` for a file that replicates nothing."""
        if not self.sources and self.alone:
            todo = "Name a configuration with a source and targets"
            raise Refused(f"{self.path} has no [source]", f"It has [{self.alone}] alone, which replicate nothing", todo)

    def sections(self) -> Iterator[BaseModel]:
        """Yield all sections of the file, those of plugins included."""
        yield from (self.state, self.window, self.serve, self.log)
        for source in self.sources.values():
            yield from (source.keys, source.journal)
        yield from (target.keys for target in self.targets.values())
        for kind in self.kinds.sections:
            yield from kind.models_in(self.section(kind))

    def files(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield the further configurations that the file names, each with the path of its key."""
        for kind in self.kinds.sections:
            yield from kind.files(self.section(kind))

    def targets_of(self, source: str) -> tuple[str, ...]:
        """Return the names of the targets that follow the source."""
        return tuple(name for name, target in self.targets.items() if target.source == source)

    def select(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the named targets, each once, or all when none is named. Raises `Refused` for an unknown one."""
        chosen_names = tuple(dict.fromkeys(names))
        for name in chosen_names:
            if name not in self.targets:
                todo = "Name a target of the configuration"
                raise Refused(f'There is no target "{name}"', nearest(name, self.targets), todo)
        return chosen_names or tuple(self.targets)


KEY_FILES = ("key.location", "keystore.location", "keytab")
"""The ends of names of options that name files of keys."""


def is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/")


def config_of(path: Path, file: Any, kinds: FileKinds, alone: str = "") -> Config:
    """Return a validated file as a configuration. `file` is of one of the models of `config.file`; `alone` names its
    only section where it replicates nothing."""
    source: sections.Source | None = getattr(file, "source", None)
    config = Config(
        path,
        {} if source is None else {source.name: HiveSource(source.name, source, file.journal, SourcePlaces())},
        {} if source is None else {name: HiveTarget(name, source.name, keys) for name, keys in file.targets.items()},
        file.state,
        getattr(file, "window", sections.Window()),
        getattr(file, "serve", Serve()),
        file.log,
        {kind.name: getattr(file, kind.name) for kind in kinds.sections if hasattr(file, kind.name)},
        kinds,
        alone,
    )
    return replace(config, sources={name: guarded(source, config) for name, source in config.sources.items()})


def guarded(source: Source, config: Config) -> Source:
    """Return the source with the places of calque's own that its definitions may not have calque read."""
    own = (path for kind in config.kinds.sections for path in kind.readable(config.section(kind)))
    readable = tuple(filter(None, (*own, source.keys.pins)))
    targets = (target for target in config.targets.values() if target.source == source.name)
    return replace(
        source,
        private=tuple(private_places(config)),
        readable=readable,
        follows_transactions=any(target.admission().takes_acid for target in targets),
    )


def private_places(config: Config) -> Iterator[str]:
    """Yield the places that no definition may have calque read: the configuration, its secrets, the state and the
    checkpoints, and those of further configurations."""
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
    for other in config.others:
        yield from private_places(other)
