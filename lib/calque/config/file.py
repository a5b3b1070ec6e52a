"""A whole configuration file: which sections it has. It holds one source, links, or clusters alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from calque.config.keys import Done, Journal, Log, Repl, Section, Source, State, Target, Window
from calque.config.pydantic_errors import WrongError
from calque.config.serve_keys import Serve
from calque.errors import Refused
from calque.plugins.clusters.config.sections import Clusters
from calque.plugins.notices.config import Notices, named_channels
from calque.plugins.remotes.config import Remotes

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
    """Those of every file."""

    state: State = Field(default_factory=dict, validate_default=True)
    journal: Journal = Field(default_factory=dict, validate_default=True)
    window: Window = Field(default_factory=dict, validate_default=True)
    serve: Serve = Field(default_factory=dict, validate_default=True)
    log: Log = Field(default_factory=dict, validate_default=True)
    repl: Repl = Field(default_factory=dict, validate_default=True)
    done: Done = Field(default_factory=dict, validate_default=True)
    notices: Annotated[Mapping[str, Notices], AfterValidator(named_channels)] = {}
    clusters: Clusters | None = None


class File(Sections):
    """A file without links."""

    source: Source
    targets: Targets
    remotes: None = None


class FileOfLinks(Sections):
    """A file with links, which may have a source, too."""

    remotes: Remotes
    source: Source | None = None
    targets: Targets = {}  # noqa: RUF012 - pydantic copies it

    @model_validator(mode="after")
    def _has_source(self) -> FileOfLinks:
        if self.source is None and (self.targets or self.notices):
            why = f"[{'targets' if self.targets else 'notices'}] needs it"
            raise WrongError(Refused("source is missing", why, "Add the section [source]"))
        return self


class ClustersFile(Section):
    """A file that replicates nothing: it says who has what of several deployments, and where statements run."""

    clusters: Clusters
    state: State = Field(default_factory=dict, validate_default=True)
    log: Log = Field(default_factory=dict, validate_default=True)


def holds_clusters_alone(data: Mapping[str, object]) -> bool:
    """Whether the sections of a file are those of `ClustersFile`."""
    return "clusters" in data and not {"source", "targets", "remotes"} & data.keys()


def form_of(data: Mapping[str, object]) -> type[File | FileOfLinks | ClustersFile]:
    """What a file with these sections is."""
    if holds_clusters_alone(data):
        return ClustersFile
    return FileOfLinks if "remotes" in data else File
