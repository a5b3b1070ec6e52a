"""Local objects that are links: filled with what the remote catalog has, or not filled (yet, or any more).

A link that is not filled is an external table without partitions, or a database, with the parameters of the link and
without marks of a replica. One that is filled is a replica that has these parameters, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.images.image import MARKS, SOURCE
from calque.core.images.own_parameters import CONNECTED_TO, is_link, without_link
from calque.model.hive import Database, SerDe, Storage, Table, is_view
from calque.model.names import TableName

Parameters = Mapping[str, str]
TEXT = Storage(
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde=SerDe(class_name="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
)
EMPTY_FOLDER = "_calque_links"
"""Where links that are not filled lie, below their databases: in directories that stay empty."""


def is_unfilled(parameters: Parameters | None) -> bool:
    return is_link(parameters) and SOURCE not in (parameters or {})


def is_unfilled_link(parameters: Parameters | None, link: Parameters) -> bool:
    """Whether the object is that link, and not filled."""
    return is_unfilled(parameters) and (parameters or {}).get(CONNECTED_TO) == link[CONNECTED_TO]


def as_link(parameters: Parameters | None, link: Parameters) -> dict[str, str]:
    """The parameters of a filled link."""
    return {**without_link(parameters or {}), **link}


def without_this(parameters: Parameters | None, link: Parameters) -> dict[str, str]:
    """A filled link's parameters as those of a replica."""
    return {key: value for key, value in without_link(parameters or {}).items() if key not in link}


def unmarked(parameters: Parameters | None) -> dict[str, str]:
    """Without what calque says of a replica, or parks."""
    return {
        key: value for key, value in (parameters or {}).items() if key not in MARKS and not key.startswith(f"{SOURCE}.")
    }


def empty_location(database: Database, table: str) -> str:
    return join(join(database.location or "", EMPTY_FOLDER), table)


def unfilled_table(name: TableName, like: Table, link: Parameters, location: str) -> Table:
    """The link of that name, with the columns and keys of a table."""
    storage = like.storage or TEXT
    if is_view(like) or not storage.input_format:
        storage = replace(TEXT, columns=storage.columns)
    serde = replace(storage.serde, parameters={}) if storage.serde is not None else TEXT.serde
    return Table(
        name.table,
        name.database,
        owner=like.owner,
        owner_type=like.owner_type,
        storage=Storage(
            storage.columns or (), location, storage.input_format, storage.output_format, serde=serde, parameters={}
        ),
        partition_keys=like.partition_keys or (),
        parameters={"EXTERNAL": "TRUE", **link},
        type="EXTERNAL_TABLE",
    )


def can_become(table: Table, other: Table) -> bool:
    """Whether a metastore alters the one into the other: partition keys stay, and views stay views."""
    keys = tuple((key.name.lower(), key.type) for key in table.partition_keys or ())
    other_keys = tuple((key.name.lower(), key.type) for key in other.partition_keys or ())
    return keys == other_keys and is_view(table) == is_view(other)
