"""How a table lies at a target: as directories of files, or as a log of commits (`calque.format`)."""

from __future__ import annotations

from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.images.image import FORMAT
from calque.model.hive import Table
from calque.model.names import OURS, EventId

CONTENTS = f"{OURS}/"
"""Below the root of a table with a log, where no file of another version lies visible: contents that need a directory
of their own."""


def plain_because(why: str) -> str:
    """What a table says of its format that was to have another than the source's."""
    return f"plain: {why}"


def committed_format(table: Table) -> str:
    """The format (`TableFormat.name`) by whose log of commits a table at a target is kept; empty for one of directories
    of files, as all are that no format but the source's was wished for, or could have it (`plain_because`)."""
    text = (table.parameters or {}).get(FORMAT, "")
    return text if text.isidentifier() else ""


def with_format(table: Table, text: str) -> Table:
    """The definition, with what became of the wish for a format; nothing where there is none."""
    others = {key: value for key, value in (table.parameters or {}).items() if key != FORMAT}
    return replace(table, parameters={**others, FORMAT: text} if text else others)


def like(table: Table, before: Table) -> Table:
    """The definition in the format that the table had before."""
    return with_format(table, (before.parameters or {}).get(FORMAT, ""))


def content_location(root: str, partition: str, event_id: EventId) -> str:
    """A directory below the table's root for what a partition (`""`: the table) has from the event on."""
    return join(root, f"{CONTENTS}{partition or 'data'}/{event_id}")


def root_of_content(location: str) -> str:
    """The root of a table without partitions whose content lies there."""
    root, found, _ = location.rpartition(f"/{CONTENTS}data/")
    return root if found else location
