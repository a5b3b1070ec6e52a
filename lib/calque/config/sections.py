"""What a plugin adds to the configuration: sections of the file, and what is asked of them."""

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
        """By their names."""

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

    `annotation` and `default` are those of the field as pydantic has it; `default` makes the value of a file without
    the section. `models` names the models below it as errors do (`notices.NAME`), and `model_at` says whose keys a path
    below the section has. `models_in` gives all sections in a value: secrets are looked for in these, and no definition
    is read from a place that they name. `misfits` are what keys say against each other, each with the key that is to be
    changed; `files` further configurations that it names, with the key of each; `readable` places of calque's own that
    are read all the same; `fixed` what can't change while calque runs, by the name that errors give it."""

    name: str
    annotation: Any
    default: Callable[[], S]
    models: Mapping[str, type[BaseModel]]
    model_at: Callable[[KeyPath], type[BaseModel]]
    template: str
    """What `calque init` writes of it, a line for each key."""
    stands_first: bool = False
    """Whether that stands before targets, without a comment sign."""
    needs_source: bool = False
    """Whether `[source]` must be there where the section has something."""
    brings_sources: bool = False
    """Whether a file with it may have `[source]` and targets, and needs none."""
    stands_alone: bool = False
    """Whether nothing but `[state]` and `[log]` stands beside it in a file that has no source."""
    models_in: Callable[[S], Iterator[BaseModel]] = no_sections
    misfits: Callable[[ReadFile], Iterator[tuple[KeyPath, Refused]]] = no_misfits
    files: Callable[[S], Iterable[tuple[KeyPath, str]]] = no_files
    readable: Callable[[S], Iterable[str]] = no_paths
    fixed: Callable[[S], Mapping[str, object]] = nothing_fixed


def takes_any(_options: Options) -> tuple[str, Refused] | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FileKinds:
    """What a file may have besides the kernel's sections. `broker_options` says which option of a broker's client can't
    be given, and why."""

    sections: tuple[SectionKind[Any], ...] = ()
    formats: tuple[str, ...] = ()
    """What tables at a target may be kept in besides "plain"."""
    broker_options: Callable[[Options], tuple[str, Refused] | None] = takes_any


KERNEL_ALONE = FileKinds()
