"""The kinds of sections that a plugin adds to the configuration's file, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from calque.errors import Refused
from calque.model.secrets import Options

S = TypeVar("S")
KeyPath = tuple[str | int, ...]


class ReadFile(Protocol):
    """A file whose keys are valid one by one: a `config.plugs.Config`."""

    @property
    def targets(self) -> Mapping[str, Any]:
        """The targets of the file by their names."""

    def section(self, kind: SectionKind[S]) -> S: ...


def no_sections(_section: object) -> Iterator[BaseModel]:
    return iter(())


def itself(section: BaseModel) -> Iterator[BaseModel]:
    yield section


def no_misfits(_file: ReadFile) -> Iterator[tuple[KeyPath, Refused]]:
    return iter(())


def no_paths(_section: object) -> Iterable[str]:
    return ()


def no_files(_section: object) -> Iterable[tuple[KeyPath, str]]:
    return ()


def nothing_fixed(_section: object) -> Mapping[str, object]:
    return {}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SectionKind(Generic[S]):
    """One section of the file, or one table of named sections, whose value is an `S`: `Config.section` gives it.

    `annotation` is the pydantic annotation of the field, and `default` makes the value of a file without the section.
    `models` are the pydantic models below it, by the names that errors give them (`notices.NAME`). `model_at` returns
    the model that has the keys at a path below the section. `models_in` yields all sections in a value: secrets are
    looked for in these, and no definition may have calque read a place that they name.

    `misfits` yields contradictions between keys, each with the key that is to be changed. `files` returns further
    configurations that the section names, with the key of each. `readable` returns places of calque's own that may be
    read all the same. `fixed` returns what can't change while calque runs, by the names that errors give it.
    """

    name: str
    annotation: Any
    default: Callable[[], S]
    models: Mapping[str, type[BaseModel]]
    model_at: Callable[[KeyPath], type[BaseModel]]
    template: str
    """The text that `calque init` writes of the section, a line for each key."""
    stands_first: bool = False
    """True where `calque init` writes the template before the targets, without comment signs."""
    needs_source: bool = False
    """True where a file with any content in the section needs `[source]`."""
    brings_sources: bool = False
    """True where a file with the section may have `[source]` and targets, and needs none."""
    stands_alone: bool = False
    """True where a file with the section and without `[source]` may have only `[state]` and `[log]` beside it."""
    models_in: Callable[[S], Iterator[BaseModel]] = no_sections
    misfits: Callable[[ReadFile], Iterator[tuple[KeyPath, Refused]]] = no_misfits
    files: Callable[[S], Iterable[tuple[KeyPath, str]]] = no_files
    readable: Callable[[S], Iterable[str]] = no_paths
    fixed: Callable[[S], Mapping[str, object]] = nothing_fixed


def takes_any(_options: Options) -> tuple[str, Refused] | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FileKinds:
    """The sections that a file may have besides the kernel's. `broker_options` returns the first option that can't be
    given to a broker's client, and why; None where all can."""

    sections: tuple[SectionKind[Any], ...] = ()
    formats: tuple[str, ...] = ()
    """The values besides "plain" that the key `format` of a target may have: formats in which plugins keep tables
    there."""
    broker_options: Callable[[Options], tuple[str, Refused] | None] = takes_any


KERNEL_ALONE = FileKinds()
