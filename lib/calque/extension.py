"""What a plugin is to the rest of calque: a frozen value that names what it adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from click import Command

    from calque.adapters.files.system import FileSystemKind
    from calque.config import Config
    from calque.config.extras import Extra
    from calque.config.sections import FileKinds, SectionKind
    from calque.engine.check.findings import Findings
    from calque.errors import Refused
    from calque.model.hive import Table
    from calque.model.names import TableName
    from calque.model.secrets import Options
    from calque.ports.formats import TableFormat
    from calque.statements.forms import Statements
    from calque.statements.language import Language
    from calque.streams.followers import Follower
    from calque.streams.kinds import CaptureKind, Page, ProcessKinds, PublisherKind, RunningProcess, WatchKind
    from calque.wiring.comparison_kinds import ComparisonKind
    from calque.wiring.kinds import JournalKind, TargetPartsKind
    from calque.wiring.retention_kinds import RetentionKind
    from calque.wiring.wiring import Wiring

    Amendment = Callable[[Config], Config]
    Check = Callable[[Wiring, Findings], None]
    BrokerOptions = Callable[[Options], tuple[str, Refused] | None]
    TableCheck = Callable[[Wiring, Mapping[TableName, Table], Findings], None]
    TargetCheck = Callable[[Wiring, str, Findings], None]
    StatusPart = Callable[[Wiring], Mapping[str, Any]]

T = TypeVar("T")


def nothing() -> None:
    return None


def no_statements() -> Statements:
    from calque.statements.forms import NO_STATEMENTS

    return NO_STATEMENTS


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """`name` is that of its folder, of its tests and of its page. The other fields are functions, so that a command
    loads what it needs and nothing else."""

    name: str
    sections: Callable[[], tuple[SectionKind[Any], ...]] = tuple
    """What the configuration may have besides."""
    broker_options: Callable[[], BrokerOptions | None] = nothing
    """Which options of a broker's client can't be given; None of a plugin that has no broker."""
    journals: Callable[[], tuple[JournalKind, ...]] = tuple
    """Formats of journals besides Delta's."""
    file_systems: Callable[[], tuple[FileSystemKind, ...]] = tuple
    target_parts: Callable[[], tuple[TargetPartsKind, ...]] = tuple
    """What replaces parts of targets, from the innermost on."""
    formats: Callable[[], tuple[TableFormat, ...]] = tuple
    """Formats of tables at targets besides Hive's own layout."""
    format_names: tuple[str, ...] = ()
    """Their names, by which the configuration chooses them."""
    amendments: Callable[[], tuple[Amendment, ...]] = tuple
    """What is added to a configuration behind the file: by what the state folder records."""
    extras: Callable[[], tuple[Extra, ...]] = tuple
    """What has to be installed besides for some configurations."""
    statements: Callable[[], Statements] = no_statements
    commands: Callable[[], tuple[Command, ...]] = tuple
    """Of the command line; what they do is imported when they run."""
    checks: Callable[[], tuple[Check, ...]] = tuple
    """What `calque check` looks at besides."""
    table_checks: Callable[[], tuple[TableCheck, ...]] = tuple
    """The same at the tables of each source that targets take."""
    target_checks: Callable[[], tuple[TargetCheck, ...]] = tuple
    """The same at each target, by its name."""
    status: Callable[[], Mapping[str, StatusPart]] = dict
    """Keys of the document of `calque status`."""
    comparisons: Callable[[], tuple[ComparisonKind, ...]] = tuple
    """What `verify` compares besides."""
    retention: Callable[[], tuple[RetentionKind, ...]] = tuple
    """What is kept of what journals and ledgers forget."""
    followers: Callable[[], tuple[Follower, ...]] = tuple
    """What goes on beside each target's windows."""
    captures: Callable[[], tuple[CaptureKind, ...]] = tuple
    publishers: Callable[[], tuple[PublisherKind, ...]] = tuple
    watches: Callable[[], tuple[WatchKind, ...]] = tuple
    page: Callable[[RunningProcess, bool], Page] | None = None
    """What a process serves at `/`, of one plugin."""


@dataclass(frozen=True, slots=True)
class App:
    """calque with these plugins; without any it is the kernel alone."""

    plugins: tuple[Plugin, ...] = ()

    def language(self) -> Language:
        """The statements of all, in the order of the plugins."""
        return language_of(self.plugins)

    def each(self, give: Callable[[Plugin], Iterable[T]]) -> tuple[T, ...]:
        """What `give` gives of every plugin, in their order."""
        return tuple(one for plugin in self.plugins for one in give(plugin))

    def load(self, path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
        """The configuration in the file, checked whole, with what the state folder adds to it; `environment` is the
        process's own where it is None. Nothing is connected to. Raises `Refused` with the line of each problem,
        `Unavailable` and `Broken`."""
        from calque.config import load

        return self.amended(load(path, self.file_kinds(), environment))

    def file_kinds(self) -> FileKinds:
        """What a configuration may have besides the kernel's sections."""
        return file_kinds_of(self.plugins)

    def amended(self, config: Config) -> Config:
        """The same with what the state folder adds now."""
        for plugin in self.plugins:
            for amend in plugin.amendments():
                config = amend(config)
        others = tuple(self.amended(other) for other in config.others)
        return replace(config, others=others) if others else config

    def wiring(self, config: Config) -> Wiring:
        """Everything that the configuration names. Nothing connects before it is used."""
        from calque.wiring.kinds import DELTA, WiringKinds
        from calque.wiring.runtime import Runtime
        from calque.wiring.wiring import Wiring

        kinds = WiringKinds(
            journals=(DELTA, *self.each(lambda plugin: plugin.journals())),
            file_systems=self.file_systems(),
            target_parts=self.each(lambda plugin: plugin.target_parts()),
            formats=self.each(lambda plugin: plugin.formats()),
        )
        return Wiring(config, Runtime(kinds=kinds))

    def file_systems(self) -> tuple[FileSystemKind, ...]:
        """Those that need more than fsspec."""
        return self.each(lambda plugin: plugin.file_systems())

    def run_file(
        self, path: str, named: Sequence[str] | None, until: str | int | None, *, capture: bool, address: str = ""
    ) -> int:
        """See `streams.job.run_file`."""
        from calque.streams.job import run_file

        def load() -> Config:
            return self.load(path)

        return run_file(load, self.wiring, named, until, capture=capture, kinds=self.process(), address=address)

    def missing_extras(self, config: Config) -> tuple[Refused, ...]:
        """One for each extra that the configuration needs and this host lacks."""
        from calque.config.extras import KERBEROS, missing_extras

        return tuple(missing_extras(config, (KERBEROS, *self.each(lambda plugin: plugin.extras()))))

    def checks(self) -> tuple[Check, ...]:
        return self.each(lambda plugin: plugin.checks())

    def table_checks(self) -> tuple[TableCheck, ...]:
        return self.each(lambda plugin: plugin.table_checks())

    def target_checks(self) -> tuple[TargetCheck, ...]:
        return self.each(lambda plugin: plugin.target_checks())

    def comparisons(self) -> tuple[ComparisonKind, ...]:
        return self.each(lambda plugin: plugin.comparisons())

    def retention(self) -> tuple[RetentionKind, ...]:
        return self.each(lambda plugin: plugin.retention())

    def status(self) -> Mapping[str, StatusPart]:
        return {key: part for plugin in self.plugins for key, part in plugin.status().items()}

    def process(self) -> ProcessKinds:
        """What the process does besides capturing sources and replicating to targets."""
        from calque.streams.kinds import ProcessKinds

        plugins = self.plugins
        return ProcessKinds(
            amended=self.amended,
            missing_extras=self.missing_extras,
            status=self.status(),
            retention=self.retention(),
            comparisons=self.comparisons(),
            followers=self.each(lambda plugin: plugin.followers()),
            captures=self.each(lambda plugin: plugin.captures()),
            publishers=self.each(lambda plugin: plugin.publishers()),
            watches=self.each(lambda plugin: plugin.watches()),
            page=next((plugin.page for plugin in plugins if plugin.page is not None), None),
        )


@cache
def file_kinds_of(plugins: tuple[Plugin, ...]) -> FileKinds:
    from calque.config.sections import FileKinds, takes_any

    sections = tuple(section for plugin in plugins for section in plugin.sections())
    options = (plugin.broker_options() for plugin in plugins)
    formats = tuple(name for plugin in plugins for name in plugin.format_names)
    return FileKinds(sections=sections, formats=formats, broker_options=next(filter(None, options), takes_any))


@cache
def language_of(plugins: tuple[Plugin, ...]) -> Language:
    from calque.statements.language import Language

    return Language(plugin.statements() for plugin in plugins)
