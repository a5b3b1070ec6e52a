"""The layout of a table at a target: directories of files, or a log of commits (`calque.format`)."""

from __future__ import annotations

from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.images.image import FORMAT, ROWS
from calque.model.hive import Table, is_full_acid, is_transactional
from calque.model.names import OURS, EventId

FULL, INSERT_ONLY = "full", "insert_only"
"""The values of `calque.rows`."""
CONTENTS = f"{OURS}/"
"""The directory, below the root of a table with a log, for contents that need a directory of their own. It is hidden,
so that no file of another version lies visible below the root."""


def plain_because(why: str) -> str:
    """Return the value of `calque.format` for a table that keeps the source's format though another was wished for."""
    return f"plain: {why}"


def committed_format(table: Table) -> str:
    """Return the format (`TableFormat.name`) by whose log of commits a table at a target is kept. Empty for a table of
    directories of files, as every table is for which no other format was wished, or which could not have it
    (`plain_because`)."""
    text = (table.parameters or {}).get(FORMAT, "")
    return text if text.isidentifier() else ""


def has_own_row_files(table: Table) -> bool:
    """Tell whether the rows of a table at a target lie in files that are none of the source's: an ACID table whose
    replica has a log of commits."""
    return ROWS in (table.parameters or {})


def has_row_ids(table: Table) -> bool:
    """Tell whether the rows of a table that `has_own_row_files` have ids."""
    return (table.parameters or {}).get(ROWS) == FULL


def with_row_files(table: Table, source: Table) -> Table:
    """Return the definition with the mark of a table that `has_own_row_files`, where the `source`'s is an ACID
    table."""
    if not is_transactional(source):
        return table
    text = FULL if is_full_acid(source) else INSERT_ONLY
    return replace(table, parameters={**(table.parameters or {}), ROWS: text})


def with_format(table: Table, text: str) -> Table:
    """Return the definition with `text` as its `calque.format`; an empty text removes the parameter."""
    others = {key: value for key, value in (table.parameters or {}).items() if key != FORMAT}
    return replace(table, parameters={**others, FORMAT: text} if text else others)


def like(table: Table, before: Table) -> Table:
    """Return the definition with the `calque.format` and `calque.rows` of the definition `before`."""
    said = before.parameters or {}
    table = with_format(table, said.get(FORMAT, ""))
    return replace(table, parameters={**(table.parameters or {}), ROWS: said[ROWS]}) if ROWS in said else table


def content_location(root: str, partition: str, event_id: EventId) -> str:
    """Return the directory below the table's root for the content that a partition (`""`: the table) has from the event
    on."""
    return join(root, f"{CONTENTS}{partition or 'data'}/{event_id}")


def root_of_content(location: str) -> str:
    """Return the root of the table without partitions whose content lies at `location`: `location` itself where it is
    no `content_location`."""
    root, found, _ = location.rpartition(f"/{CONTENTS}data/")
    return root if found else location
