"""What a configuration plugs into calque: a closed union of values, each made from the sections of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from pydantic import BaseModel

from calque.config import keys as sections
from calque.core.admit import Admission
from calque.errors import Refused, nearest
from calque.model.policy import Policy
from calque.model.state_places import SourcePlaces


@dataclass(frozen=True, slots=True)
class HiveSource:
    """A Hive metastore whose log is captured into a journal. `places` says where its state lies."""

    name: str
    keys: sections.Source
    journal: sections.Journal
    places: SourcePlaces

    def topic(self) -> str:
        """The journal's topic: `<source name>.events` unless the file names one."""
        return self.journal.topic or f"{self.name}.events"


@dataclass(frozen=True, slots=True)
class HiveTarget:
    """A Hive metastore that follows the source of that name."""

    name: str
    source: str
    keys: sections.Target

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
            drops=self.keys.drops,
            grace=self.keys.grace,
            max_drop=self.keys.max_drop,
            lease=self.keys.lease,
            bandwidth=self.keys.bandwidth,
        )

    def admission(self) -> Admission:
        """The policy's names, ready to be asked."""
        return Admission(self.policy())


Source = HiveSource
"""What is captured."""
Target = HiveTarget
"""What follows a source."""
Plug = Source | Target


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration, valid as a whole. Every target follows one of the sources; both are known by their names."""

    path: Path = field(compare=False)
    """Of the file that it was read from, absolute."""
    sources: Mapping[str, Source]
    targets: Mapping[str, Target]
    state: sections.State
    window: sections.Window
    serve: sections.Serve

    def target(self, name: str) -> Target:
        """Raises `Refused` with the nearest name."""
        self.select((name,))
        return self.targets[name]

    def source_of(self, target: str) -> Source:
        """The source that the target follows. Raises `Refused` for an unknown target."""
        return self.sources[self.target(target).source]

    def only_source(self) -> Source:
        """The one that a file holds, for what speaks of one source: the status, `--until head`, `check`, `journal`."""
        (source,) = self.sources.values()
        return source

    def sections(self) -> Iterator[BaseModel]:
        """All of the file."""
        yield from (self.state, self.window, self.serve)
        for source in self.sources.values():
            yield from (source.keys, source.journal)
        yield from (target.keys for target in self.targets.values())

    def targets_of(self, source: str) -> tuple[str, ...]:
        """The targets that follow the source."""
        return tuple(name for name, target in self.targets.items() if target.source == source)

    def select(self, names: Iterable[str]) -> tuple[str, ...]:
        """The named targets, each once, or all when none is named. Raises `Refused` for an unknown one."""
        chosen_names = tuple(dict.fromkeys(names))
        for name in chosen_names:
            if name not in self.targets:
                todo = "Name a target of the configuration"
                raise Refused(f'There is no target "{name}"', nearest(name, self.targets), todo)
        return chosen_names or tuple(self.targets)


def config_of(path: Path, file: sections.File) -> Config:
    """The file's sections as plugs."""
    sources: dict[str, Source] = {}
    targets: dict[str, Target] = {}
    for plug in plugs_of(file):
        match plug:
            case HiveSource():
                sources[plug.name] = plug
            case HiveTarget():
                targets[plug.name] = plug
            case _:
                assert_never(plug)
    return Config(path, sources, targets, file.state, file.window, file.serve)


def plugs_of(file: sections.File) -> Iterator[Plug]:
    """Each section that plugs something in, in the order of the file's model."""
    yield HiveSource(file.source.name, file.source, file.journal, SourcePlaces())
    for name, target in file.targets.items():
        yield HiveTarget(name, file.source.name, target)
