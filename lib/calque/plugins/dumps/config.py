"""The keys of `[repl]`: the place of dumps, and how they are made and loaded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from calque.config.checks import OptionalLocation, OptionalName, OptionTable
from calque.config.keys import Section
from calque.config.sections import KeyPath, SectionKind, itself


class Repl(Section):
    """The section `[repl]`, for REPL DUMP and REPL LOAD. An empty `source` means the name of `[source]`."""

    root: OptionalLocation = ""
    retain: Annotated[int, Field(ge=0)] = 3
    source: OptionalName = ""
    mode: Literal["seed", "hive4"] = "seed"
    storage: OptionTable = {}  # noqa: RUF012 - pydantic copies it


def model_at(_path: KeyPath) -> type[Repl]:
    return Repl


def dump_root(section: Repl) -> tuple[str, ...]:
    return (section.root,)


TEMPLATE = """\
[repl]                                      # REPL DUMP and REPL LOAD
# root = "hdfs://ns/repl"                   # where dumps lie: hive.repl.rootdir
#retain = 3                                 # finished dumps of a database that stay; 0 for all
#source = ""                                # the source's name in marks of what is loaded; "" for [source] name
#mode = "seed"                              # seed | hive4: without FROM a bootstrap, or on from the last loaded dump
#storage = {}                               # for what lies below root; those of [source] when left out
"""
REPL = SectionKind(
    name="repl",
    annotation=Repl,
    default=Repl,
    models={"repl": Repl},
    model_at=model_at,
    models_in=itself,
    readable=dump_root,
    template=TEMPLATE,
    stands_first=True,
)
