"""The commit of any difference of one table: of a table with a log of commits (Delta), and where the catalog commits
any difference at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from calque.core.images.table_layout import committed_format, has_own_row_files, plain_because
from calque.engine.apply import hidden_build, log_rows
from calque.engine.apply.append_files import append_unseen
from calque.engine.apply.context import HopContext
from calque.engine.apply.facets import statistics_of_others, write_kept
from calque.engine.apply.log_rows import new_rows, with_rows
from calque.engine.apply.partitions import (
    PartitionWrite,
    Parts,
    altered_partitions,
    definitions,
    forget,
    incarnation_of,
    new_partitions,
    remember,
    source_of,
)
from calque.engine.apply.tables import (
    altered,
    create_table,
    created,
    drop_table,
    expected,
    followed,
    new_table,
    now_under,
    replicated,
    switched_content,
)
from calque.engine.files.stage import StagedFiles
from calque.engine.target.observe import ShownTable
from calque.errors import Refused
from calque.model.files import Listing
from calque.model.hive import Table, is_transactional, location_of
from calque.model.names import TableName
from calque.model.plan import CommitTable, CreateTable, Head, HiddenBuild, Hop, Rebuild, ShownState
from calque.ports import Conflict, FormatMisfit, TableCommit


def commit_table(context: HopContext, operation: CommitTable, hop: Hop) -> None:
    shows = ShownState(hop.to_event, hop.first_event)
    if operation.was is None:
        create(context, operation.table, operation.head, present(operation.partitions), shows)
    else:
        change(context, operation, context.shown_table(operation.was), shows)


def present(partitions: Iterable[tuple[str, object]]) -> Parts:
    return [(name, part) for name, part in partitions if part is not None]  # type: ignore[misc]


def create(context: HopContext, table: TableName, head: Head, parts: Parts, shows: ShownState) -> None:
    """Make a table where there is none. It is plain where it can't have the format that the policy wants."""
    source = replicated(context, head.version)
    wanted_format = context.side.wanted_format(source)
    if not wanted_format and not context.side.catalog.abilities().any_difference:
        create_plain(context, table, head, parts)
        return
    sources = (source_of(context, part) for _, part in parts)
    why = context.side.misfit(wanted_format, source, sources) if wanted_format else ""
    if not why:
        try:
            commit_new(context, table, head, parts, shows, wanted_format)
        except FormatMisfit as misfit:
            why = misfit.reason
    if why and is_transactional(source):
        raise Refused(f"{table} can't be a {wanted_format.title()} table", why, 'Set another "acid" for it')
    if why:
        context.formats[table] = plain_because(why)
        create_plain(context, table, head, parts)


def commit_new(
    context: HopContext, table: TableName, head: Head, parts: Parts, shows: ShownState, table_format: str
) -> None:
    definition, placed = new_table(context, table, head, table_format)
    shown = ShownTable(definition)
    added = with_rows(context, definition, new_partitions(context, table, shown, parts), parts)
    if head.data is not None and has_own_row_files(definition):
        placed = replace(placed, files=context.listing(head.data).files)
    contents = contents_of(added, placed if head.data is not None else None)
    put = list(definitions(added))
    log_rows.commit(context, TableCommit(None, definition, put, contents=contents, shows=shows), head, parts)
    created(context, table, head, shown, placed)
    remember(context, table, added)


def create_plain(context: HopContext, table: TableName, head: Head, parts: Parts) -> None:
    """Make a plain table of one that was to have a format and can't."""
    if parts:
        hidden_build.build(context, HiddenBuild(table, head, tuple(parts)))
    else:
        create_table(context, CreateTable(table, head))


def change(context: HopContext, operation: CommitTable, old: ShownTable, shows: ShownState) -> None:
    table, was, head = operation.table, operation.was, operation.head
    assert was is not None
    if not context.commits(old.table):
        raise Conflict(f"{context.name_at_target(was)} is kept plain")
    parts = present(operation.partitions)
    old_parts = [(name, part) for name, part in parts if name in old.partitions]
    new_parts = [(name, part) for name, part in parts if name not in old.partitions]
    dropped_names = [name for name, part in operation.partitions if part is None and name in old.partitions]
    grown = appended(context, operation, old)
    placed = grown.pop("", None)
    if placed is None and "" in operation.switched:
        placed = switched_content(context, table, head, old)
    definition = altered(context, table, old, head, placed)
    before = replace(old, table=definition)
    written = altered_partitions(context, table, before, old_parts, operation.switched - grown.keys(), grown)
    kept_directories = {} if has_own_row_files(definition) else renamed(context, old, dropped_names, new_parts)
    added = new_partitions(context, table, before, new_parts, kept_directories)
    written |= with_rows(context, definition, added, new_parts)
    if committed_format(definition):
        require_fit(context, table, definition, old, written, cascade=bool(operation.cascade))
    kept_statistics = {} if committed_format(definition) else statistics_of_others(context, was, parts)
    commit = TableCommit(
        context.name_at_target(was),
        definition,
        list(definitions(written)),
        dropped_names,
        bool(operation.cascade),
        expected(old),
        contents_of(written, placed),
        shows,
    )
    log_rows.commit(context, commit, head, parts, old.listings)
    partitions = {name: followed(part, definition, bool(operation.cascade)) for name, part in old.partitions.items()}
    now_under(context, was, table, replace(before, partitions=partitions), shows.event_id)
    if placed is not None:
        context.shows_files(table, "", placed)
    context.record(table, "", context.shown_table(table).incarnation(), head.since, "commit_table", placed)
    forget(context, table, dropped_names, shows.event_id)
    remember(context, table, written)
    write_kept(context, table, kept_statistics)


def appended(context: HopContext, operation: CommitTable, old: ShownTable) -> dict[str, StagedFiles]:
    """Return the new contents of a table with a log (`""`: its own) that only get more files, by partition. The files
    are put beside those that are there, where no reader sees them before the commit."""
    if not committed_format(old.table):
        return {}
    data = {name: (part.data, part.since) for name, part in present(operation.partitions)}
    if operation.head.data is not None:
        data[""] = operation.head.data, operation.head.since
    if has_own_row_files(old.table):
        return new_rows(context, old, {name: data[name][0] for name in operation.switched & data.keys()})
    grown = {}
    for name in sorted(operation.switched & data.keys() & old.listings.keys()):
        content, since = data[name]
        placed = append_unseen(context, operation.table, name, old.listings[name], context.listing(content), since)
        if placed is not None:
            grown[name] = placed
    return grown


def require_fit(
    context: HopContext,
    table: TableName,
    definition: Table,
    old: ShownTable,
    written: Mapping[str, PartitionWrite],
    *,
    cascade: bool,
) -> None:
    """Raise `FormatMisfit` where the state can't be one of the table's format."""
    why = context.side.misfit(
        committed_format(definition), definition, (write.definition for write in written.values())
    )
    if not why and not cascade and columns_of(definition) != columns_of(old.table):
        kept = context.side.catalog.partition_names(context.name_at_target(table))
        if {*kept} - written.keys():
            why = "partitions have other columns than the table"
    if why:
        raise FormatMisfit(why)


def columns_of(table: Table) -> object:
    return table.storage.columns if table.storage is not None else None


def contents_of(written: Mapping[str, PartitionWrite], placed: StagedFiles | None) -> dict[str, Listing]:
    """Return the files of objects that get other ones, by partition (`""`: the table itself)."""
    contents = {name: write.placed.listing() for name, write in written.items() if write.placed is not None}
    return contents if placed is None else {**contents, "": placed.listing()}


def renamed(context: HopContext, old: ShownTable, dropped_names: list[str], new_parts: Parts) -> dict[str, StagedFiles]:
    """Return the directories of new partitions that are vanished ones under another name, with the same files."""
    candidates = dict.fromkeys(dropped_names)
    directories = {}
    for name, part in new_parts:
        for was in candidates:
            old_partition = old.partitions[was]
            is_same = was == part.lineage or (part.incarnation and incarnation_of(old_partition) == part.incarnation)
            listing = old.listings.get(was)
            if (
                is_same
                and listing
                and part.data.location
                and listing.fingerprint() == context.listing(part.data).fingerprint()
            ):
                directories[name] = StagedFiles(
                    location_of(old_partition) or "", listing.files, combination=listing.combination
                )
                del candidates[was]
                break
    return directories


def rebuild(context: HopContext, operation: Rebuild, hop: Hop) -> None:
    """Make, as the last resort for a table with a log of commits, another table of its name, or another name and more
    differences at once. The table is absent for a while."""
    table, was, head = operation.table, operation.was, operation.head
    shows = ShownState(hop.to_event, hop.first_event)
    if operation.whole or was is None:
        if was is not None:
            drop_table(context, was, hop.to_event)
        create(context, table, head, present(operation.partitions), shows)
        return
    old = context.shown_table(was)
    names = {name for name, part in present(operation.partitions)} & old.partitions.keys()
    switched = frozenset(
        name
        for name, part in present(operation.partitions)
        if name in names and old.listings[name].fingerprint() != context.listing(part.data).fingerprint()
    ) | frozenset({""} if head.data is not None and head.data.event_id else ())
    change(context, CommitTable(table, was, head, operation.partitions, switched, operation.cascade), old, shows)
