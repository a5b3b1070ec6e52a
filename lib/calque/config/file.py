"""The pydantic model of a whole configuration file: the kernel's sections and those that plugins add."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from calque.config.keys import Journal, Log, Section, Source, State, Target, Window
from calque.config.pydantic_errors import WrongError
from calque.config.sections import FileKinds, SectionKind
from calque.config.serve_keys import Serve
from calque.errors import Refused

TARGET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def _named_targets(targets: Mapping[str, Target]) -> Mapping[str, Target]:
    if not targets:
        raise WrongError(Refused("there is no target", "Nothing would be replicated", "Add a section [targets.NAME]"))
    for name in targets:
        if not TARGET.fullmatch(name):
            why = 'Letters, digits, "_" and "-", at most 64, make a name'
            raise WrongError(Refused(f'"{name}" is no name for a target', why, "Write e.g. [targets.dr]"), name)
    return targets


Targets = Annotated[Mapping[str, Target], AfterValidator(_named_targets)]


class Sections(Section):
    """The kernel's sections but `[source]` and targets, which some files need not have."""

    state: State = Field(default_factory=dict, validate_default=True)
    journal: Journal = Field(default_factory=dict, validate_default=True)
    window: Window = Field(default_factory=dict, validate_default=True)
    serve: Serve = Field(default_factory=dict, validate_default=True)
    log: Log = Field(default_factory=dict, validate_default=True)


class StateAlone(Section):
    """The sections of a file that replicates nothing."""

    state: State = Field(default_factory=dict, validate_default=True)
    log: Log = Field(default_factory=dict, validate_default=True)


def alone_in(data: Mapping[str, object], kinds: FileKinds) -> SectionKind[Any] | None:
    """Return the section with which a file stands alone, because it has no source and no targets; None for a file that
    replicates."""
    with_others = {"source", "targets", *(kind.name for kind in kinds.sections if kind.brings_sources)}
    if with_others & data.keys():
        return None
    return next((kind for kind in kinds.sections if kind.stands_alone and kind.name in data), None)


def form_of(data: Mapping[str, object], kinds: FileKinds) -> type[Section]:
    """Return the model for a file with these sections."""
    alone = alone_in(data, kinds)
    if alone is not None:
        return _model("FileOfOne", StateAlone, (alone,))
    sources = [kind for kind in kinds.sections if kind.brings_sources]
    others = tuple(kind for kind in kinds.sections if not kind.brings_sources or kind.name in data)
    if any(kind.name in data for kind in sources):
        return _model("FileOfSources", Sections, others, is_source_needed=False)
    return _model("File", Sections, others, is_source_needed=True)


def whole_form(kinds: FileKinds) -> type[Section]:
    """Return the model that has every section."""
    return _model("FileOfSources", Sections, kinds.sections, is_source_needed=False)


@lru_cache
def _model(
    name: str, base: type[Section], kinds: tuple[SectionKind[Any], ...], *, is_source_needed: bool | None = None
) -> type[Section]:
    """Return a model called `name` with the sections of `kinds`. `is_source_needed` is None for a file that can have no
    source."""
    fields: dict[str, Any] = {kind.name: (kind.annotation, Field(default_factory=kind.default)) for kind in kinds}
    if is_source_needed is True:
        fields |= {"source": (Source, ...), "targets": (Targets, ...)}
    elif is_source_needed is False:
        fields |= {"source": (Source | None, None), "targets": (Targets, Field(default_factory=dict))}
    return create_model(name, __base__=base, **fields)


def without_source(data: Mapping[str, object], kinds: FileKinds) -> Refused | None:
    """Return the refusal of a file that needs `[source]` and has none; it names the first section that needs it. None
    for any other file."""
    named: Iterable[str] = ("targets", *(kind.name for kind in kinds.sections if kind.needs_source))
    needing = next((name for name in named if data.get(name)), None)
    return (
        None if needing is None else Refused("source is missing", f"[{needing}] needs it", "Add the section [source]")
    )
