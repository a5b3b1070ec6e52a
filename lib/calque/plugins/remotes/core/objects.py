"""The local objects that are links: filled with the remote catalog's contents, or not filled (not yet, or no longer).

A link that is not filled is an external table without partitions, or a database, with the parameters of the link and
without marks of a replica. A filled link is a replica that has the parameters of the link, too.
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
"""The folder below a database in which links that are not filled have their directories, which stay empty."""


def is_unfilled(parameters: Parameters | None) -> bool:
    return is_link(parameters) and SOURCE not in (parameters or {})


def is_unfilled_link(parameters: Parameters | None, link: Parameters) -> bool:
    """Tell whether an object with these parameters is the link with the parameters `link`, and is not filled."""
    return is_unfilled(parameters) and (parameters or {}).get(CONNECTED_TO) == link[CONNECTED_TO]


def as_link(parameters: Parameters | None, link: Parameters) -> dict[str, str]:
    """Return the parameters of a filled link: those of the replica together with those of the link."""
    return {**without_link(parameters or {}), **link}


def without_this(parameters: Parameters | None, link: Parameters) -> dict[str, str]:
    """Return the parameters of a filled link without those of the link, as a replica has them."""
    return {key: value for key, value in without_link(parameters or {}).items() if key not in link}


def unmarked(parameters: Parameters | None) -> dict[str, str]:
    """Return the parameters without the marks that calque sets on a replica, and without parked ones."""
    return {
        key: value for key, value in (parameters or {}).items() if key not in MARKS and not key.startswith(f"{SOURCE}.")
    }


def empty_location(database: Database, table: str) -> str:
    return join(join(database.location or "", EMPTY_FOLDER), table)


def unfilled_table(name: TableName, like: Table, link: Parameters, location: str) -> Table:
    """Return the table `name` as a link that is not filled, with the columns and partition keys of the table `like`, at
    a location without files."""
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
    """Tell whether a metastore can alter `table` into `other`: both have the same partition keys, and both are views or
    none is."""
    keys = tuple((key.name.lower(), key.type) for key in table.partition_keys or ())
    other_keys = tuple((key.name.lower(), key.type) for key in other.partition_keys or ())
    return keys == other_keys and is_view(table) == is_view(other)
