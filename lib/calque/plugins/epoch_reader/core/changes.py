"""The changes of objects as rows. Columns have the names of Delta's change data feed, where it has such columns.

A row of the ledger says what a target did to a table or to a partition (`change`). A reader gets the kind of change
that consumers of such feeds know: the object came (`insert`), was changed (`update`) or went (`delete`).

A rename is two rows of the ledger with one incarnation and one event: `rename_away` under the old name, and the table
under the new one. They become a `delete` and an `insert`, no matter which call gave the table its new name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from calque.core.records.contents import FOUND, UNSURE
from calque.model.ledger import Epoch
from calque.model.names import TableName

SCHEMA = pa.schema(
    [
        ("_change_type", pa.string()),
        ("epoch", pa.int64()),
        ("published_at", pa.timestamp("us", tz="UTC")),
        ("event_id", pa.int64()),
        ("object_event_id", pa.int64()),
        ("kind", pa.string()),
        ("database", pa.string()),
        ("table", pa.string()),
        ("partition", pa.string()),
        ("incarnation", pa.string()),
        ("location", pa.string()),
        ("delta_version", pa.int64()),
        ("snapshot_id", pa.int64()),
        ("exception", pa.string()),
    ]
)
INSERT, UPDATE, DELETE = "insert", "update", "delete"
RENAME_AWAY = "rename_away"
CHANGE_TYPES = MappingProxyType(
    {
        "create_table": INSERT,
        "add_partition": INSERT,
        "rename_partition": INSERT,
        "replace": INSERT,
        "read": INSERT,
        "adopt": INSERT,
        "alter_table": UPDATE,
        "alter_partition": UPDATE,
        "append": UPDATE,
        "rebuild": UPDATE,
        "commit_table": UPDATE,
        "commit_rows": UPDATE,
        # The table got another name at the target, not at the source. After a `rename_away` it is an insert.
        "rename_table": UPDATE,
        FOUND: UPDATE,
        UNSURE: UPDATE,
        "drop_table": DELETE,
        "drop_partition": DELETE,
        RENAME_AWAY: DELETE,
    }
)
"""The kind of change for each `change` of the ledger. A change that begins a table anew
(`core.records.contents.BEGINNINGS`) is an insert. A word that is not here comes from a later version of calque, and is
an update."""
BRIDGE, IN_PARTS, SET_ASIDE = "bridge", "in_parts", "set_aside"


def changes_of(epochs: Sequence[Epoch], rows: pa.Table, takes: Callable[[TableName], bool]) -> pa.Table:
    """Return the changes as rows of `SCHEMA`, in the order of `rows`, which have the columns that `ports.EpochLog`
    names. Rows of other epochs than `epochs` are left out, and rows of tables that `takes` does not take."""
    numbers = pa.array([epoch.epoch for epoch in epochs], pa.int64())
    rows = rows.filter(pc.is_in(rows["epoch"], numbers))
    # Types are found before tables are chosen, because the old name of a rename may not be among those wanted.
    rows = rows.append_column("change_type", change_types(rows))
    rows = rows.append_column("name", joined(rows["database"], rows["table"]))
    names = pc.unique(rows["name"]).to_pylist()
    taken = pa.array([name for name in names if takes(TableName(*name.partition(".")[::2]))], pa.string())
    rows = rows.filter(pc.is_in(rows["name"], taken)).combine_chunks()
    places = pc.index_in(rows["epoch"], numbers).combine_chunks()
    moments = [datetime.fromisoformat(epoch.published_at) for epoch in epochs]
    of_epochs = {
        "published_at": pa.array(moments, SCHEMA.field("published_at").type).take(places),
        "event_id": pa.array([epoch.event_id for epoch in epochs], pa.int64()).take(places),
        "kind": pa.array([epoch.kind for epoch in epochs], pa.string()).take(places),
    }
    of_rows = {
        "_change_type": rows["change_type"],
        "object_event_id": rows["event_id"],
        "snapshot_id": pa.nulls(rows.num_rows, pa.int64()),
        "exception": exceptions(epochs, rows),
    }
    made = {**of_epochs, **of_rows}
    return pa.table([made[name] if name in made else rows[name] for name in SCHEMA.names], schema=SCHEMA)


def change_types(rows: pa.Table) -> pa.ChunkedArray:
    """Return the kind of change of each row. A row that gives a renamed table its new name is an insert."""
    known = pc.index_in(rows["change"], pa.array(list(CHANGE_TYPES), pa.string()))
    types = pc.fill_null(pc.take(pa.array(list(CHANGE_TYPES.values()), pa.string()), known), UPDATE)
    is_of_table = pc.equal(rows["partition"], "")
    is_old_name = pc.and_(is_of_table, pc.equal(rows["change"], RENAME_AWAY))
    links = joined(pc.cast(rows["epoch"], pa.string()), rows["incarnation"], pc.cast(rows["event_id"], pa.string()))
    is_linked = pc.and_(is_of_table, pc.is_in(links, links.filter(is_old_name).combine_chunks()))
    is_new_name = pc.and_(is_linked, pc.equal(types, UPDATE))
    return pc.if_else(is_new_name, INSERT, types)


def exceptions(epochs: Iterable[Epoch], rows: pa.Table) -> pa.ChunkedArray:
    """Return for each row the exception from the guarantee that its epoch made for its table, null for none. Besides
    the ledger's columns `rows` have a column `name`. Of several exceptions the one counts that readers notice most."""
    keys = [joined(pc.cast(rows["epoch"], pa.string()), rows[name]) for name in ("name", "database")]
    bridges, in_parts, aside = set[str](), set[str](), set[str]()
    for epoch in epochs:
        bridges |= {f"{epoch.epoch}.{bridge.table}" for bridge in epoch.bridges}
        in_parts |= {f"{epoch.epoch}.{name}" for name in (*epoch.in_parts, *(parts.table for parts in epoch.parts))}
        # A database among these names stands for all of its tables.
        aside |= {f"{epoch.epoch}.{name}" for name in (*epoch.quarantined, *epoch.set_aside)}
    masks = [among(keys, names) for names in (bridges, in_parts, aside)]
    return pc.case_when(pc.make_struct(*masks), BRIDGE, IN_PARTS, SET_ASIDE, pa.scalar(None, pa.string()))


def among(columns: Iterable[pa.ChunkedArray], texts: Iterable[str]) -> pa.ChunkedArray:
    """Tell of each row whether one of the two columns has one of the texts."""
    value_set = pa.array(sorted(texts), pa.string())
    first, second = (pc.is_in(column, value_set) for column in columns)
    return pc.or_(first, second)


def joined(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*columns, ".")
