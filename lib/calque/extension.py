"""The form of a plugin: a frozen value that names what it adds to calque."""

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
    from calque.control.question import HttpQuestion, Question
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
    """A plugin. `name` is the name of its folder, of its tests and of its page. The other fields are functions, so that
    a command loads only what it needs."""

    name: str
    sections: Callable[[], tuple[SectionKind[Any], ...]] = tuple
    """Sections of the configuration besides the kernel's."""
    broker_options: Callable[[], BrokerOptions | None] = nothing
    """A function that returns the check of options for a broker's client, which says which of them can't be given; None
    for a plugin that has no broker."""
    journals: Callable[[], tuple[JournalKind, ...]] = tuple
    """Formats of journals besides Delta's."""
    file_systems: Callable[[], tuple[FileSystemKind, ...]] = tuple
    target_parts: Callable[[], tuple[TargetPartsKind, ...]] = tuple
    """Functions that replace parts of targets, from the innermost on."""
    formats: Callable[[], tuple[TableFormat, ...]] = tuple
    """Formats of tables at targets besides Hive's own layout."""
    format_names: tuple[str, ...] = ()
    """The names by which the configuration chooses the formats of `formats`."""
    amendments: Callable[[], tuple[Amendment, ...]] = tuple
    """Functions that add to a configuration what the state folder records, after the file was read."""
    extras: Callable[[], tuple[Extra, ...]] = tuple
    """Extras of the distribution that some configurations need."""
    statements: Callable[[], Statements] = no_statements
    commands: Callable[[], tuple[Command, ...]] = tuple
    """Commands of the command line. The modules that do their work are imported when they run."""
    checks: Callable[[], tuple[Check, ...]] = tuple
    """Further checks of `calque check`."""
    table_checks: Callable[[], tuple[TableCheck, ...]] = tuple
    """Further checks of `calque check` on the tables of each source that targets take."""
    target_checks: Callable[[], tuple[TargetCheck, ...]] = tuple
    """Further checks of `calque check` on each target, by its name."""
    status: Callable[[], Mapping[str, StatusPart]] = dict
    """Further values of the document of `calque status`, by their keys."""
    questions: Callable[[], Mapping[str, Question]] = dict
    """Further questions that a running process answers for commands, by their names."""
    http_questions: Callable[[], Mapping[str, HttpQuestion]] = dict
    """Requests that a running process answers over HTTP, by their paths."""
    comparisons: Callable[[], tuple[ComparisonKind, ...]] = tuple
    """Further comparisons of `calque verify`."""
    retention: Callable[[], tuple[RetentionKind, ...]] = tuple
    """Hooks that are called before journals and ledgers forget rows."""
    followers: Callable[[], tuple[Follower, ...]] = tuple
    """Work beside each target's windows."""
    captures: Callable[[], tuple[CaptureKind, ...]] = tuple
    publishers: Callable[[], tuple[PublisherKind, ...]] = tuple
    watches: Callable[[], tuple[WatchKind, ...]] = tuple
    page: Callable[[RunningProcess, bool], Page] | None = None
    """The function that makes the page which a process serves at `/`; None for a plugin without one. Of several plugins
    with a page the first one's is served."""


@dataclass(frozen=True, slots=True)
class App:
    """calque with these plugins. Without a plugin it is the kernel alone."""

    plugins: tuple[Plugin, ...] = ()

    def language(self) -> Language:
        """Return the language of the kernel's statements and those of all plugins, in the order of the plugins."""
        return language_of(self.plugins)

    def each(self, give: Callable[[Plugin], Iterable[T]]) -> tuple[T, ...]:
        """Return what `give` returns for every plugin, in their order."""
        return tuple(one for plugin in self.plugins for one in give(plugin))

    def load(self, path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
        """Return the configuration in the file, checked whole, with what the state folder adds to it. Nothing is
        connected to.

        `environment` is the process's own where None is given. Raises `Refused` with the line of each problem,
        `Unavailable` and `Broken`.
        """
        return self.amended(self.read(path, environment))

    def read(self, path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
        """Return the configuration in the file, checked whole, without what the state folder adds. Raises as `load`
        does."""
        from calque.config import load

        return load(path, self.file_kinds(), environment)

    def file_kinds(self) -> FileKinds:
        """Return the sections that a configuration may have besides the kernel's."""
        return file_kinds_of(self.plugins)

    def parse(self, path: Path, text: str) -> Config:
        """Return the configuration that the file `path` would have with this text, checked whole. Raises `Refused`."""
        from calque.config.reader import parse

        return parse(path, text, self.file_kinds())

    def amended(self, config: Config) -> Config:
        """Return the configuration with what the state folder adds to it now, to further configurations that it names,
        too."""
        for plugin in self.plugins:
            for amend in plugin.amendments():
                config = amend(config)
        others = tuple(self.amended(other) for other in config.others)
        return replace(config, others=others) if others else config

    def wiring(self, config: Config) -> Wiring:
        """Return the live objects of everything that the configuration names. Nothing connects before it is used."""
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
        """Return the file systems that need more than fsspec."""
        return self.each(lambda plugin: plugin.file_systems())

    def run_file(
        self, path: str, named: Sequence[str] | None, until: str | int | None, *, capture: bool, address: str = ""
    ) -> int:
        """Run the always-on job of the configuration in the file `path`, and return its exit code. The arguments are
        those of `streams.job.run_file`."""
        from calque.control.asking import digest_of_file
        from calque.streams.job import run_file
        from calque.streams.reload import ConfigurationReader

        reader = ConfigurationReader(lambda: self.load(path), named, lambda: digest_of_file(path))
        return run_file(reader, self.wiring, until, capture=capture, kinds=self.process(), address=address)

    def missing_extras(self, config: Config) -> tuple[Refused, ...]:
        """Return a refusal for each extra that the configuration needs and this host lacks."""
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

    def questions(self) -> Mapping[str, Question]:
        """Return the questions of commands that only show what there is, by their names. Each loads what it needs when
        it is asked."""
        from calque.control.questions import KERNEL_QUESTIONS, status

        def sql(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
            from calque.statements.questions import shown

            return shown(self.language(), wiring, arguments)

        own: dict[str, Question] = {"status": lambda wiring, _: status(wiring, self.status()), "sql": sql}
        of_plugins = (plugin.questions() for plugin in self.plugins)
        return {**KERNEL_QUESTIONS, **own, **{name: ask for some in of_plugins for name, ask in some.items()}}

    def process(self) -> ProcessKinds:
        """Return what plugins add to a process that captures sources and replicates to targets."""
        from calque.streams.kinds import ProcessKinds

        plugins = self.plugins
        return ProcessKinds(
            amended=self.amended,
            missing_extras=self.missing_extras,
            status=self.status(),
            questions=self.questions(),
            http_questions=dict(self.each(lambda plugin: plugin.http_questions().items())),
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
