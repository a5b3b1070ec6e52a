"""The two files of a table's constraints: `c_<table>` has its own constraints, `f_<table>` its foreign keys.

Both files have the same fields, one for each kind of constraint. The value of a field is the message of the event that
would add these constraints. A kind that belongs into the other file has an empty text. Source: `ConstraintsSerializer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from calque.core.events.decode import Undecodable, embedded_list, parsed, thrift_object
from calque.core.events.encode import tjson
from calque.core.states.facets import ADDED
from calque.model.facets import Check, Constraint, DefaultValue, ForeignKey, NotNull, PrimaryKey, UniqueKey
from calque.plugins.dumps.core.metadata import metadata_object, string_fields

KINDS: Mapping[str, type[Constraint]] = {
    "pks": PrimaryKey,
    "uks": UniqueKey,
    "nns": NotNull,
    "fks": ForeignKey,
    "dks": DefaultValue,
    "cks": Check,
}
LISTS = dict(ADDED.values())
"""The fields of a message that list constraints, by the kind of constraint."""


def constraints_text(constraints: Sequence[Constraint], timestamp: int) -> str:
    """Return the text of the file `c_<table>` with all `constraints` that are no foreign keys; `timestamp` is in
    seconds."""
    return metadata_object(
        {key: "" if kind is ForeignKey else message(kind, constraints, timestamp) for key, kind in KINDS.items()}
    )


def foreign_keys_text(constraints: Sequence[Constraint], timestamp: int) -> str:
    """Return the text of the file `f_<table>` with the foreign keys among `constraints`; `timestamp` is in seconds."""
    return metadata_object(
        {key: message(kind, constraints, timestamp) if kind is ForeignKey else "" for key, kind in KINDS.items()}
    )


def read_constraints(content: bytes) -> Iterator[Constraint]:
    """Return the constraints in the content of `c_<table>` or `f_<table>`. Raises `Undecodable`."""
    fields = dict(string_fields(content))
    if KINDS.keys().isdisjoint(fields):
        raise Undecodable("the file has no constraints")
    for key, kind in KINDS.items():
        if fields.get(key):
            for one in embedded_list(parsed(fields[key], key), LISTS[kind]):
                yield thrift_object(kind, one)


def message(kind: type[Constraint], constraints: Sequence[Constraint], timestamp: int) -> str:
    rows = [tjson(one) for one in constraints if type(one) is kind]
    fields = {"server": "", "servicePrincipal": "", "timestamp": timestamp, LISTS[kind]: rows}
    return orjson.dumps(fields).decode()
