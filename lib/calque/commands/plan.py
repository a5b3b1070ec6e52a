"""The command `calque plan`, which prints what the next window would do and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import click

from calque.commands.options import EVENT_ID, CommandSettings, examples, shared, targets_option
from calque.commands.output import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config
    from calque.core.plan.cost import Cost
    from calque.engine.replica.dry_run import ExplainedWindow
    from calque.engine.window.explain import ExplainedGroup
    from calque.model.ledger import TableRow
    from calque.model.names import EventId, TableName
    from calque.model.plan import Hop
    from calque.wiring.wiring import Wiring

HEADINGS = ("table", "to event", "operation", "objects", "calls", "files", "bytes", "remark")
ROWS = 200
"""The number of hops, and of tables of one kind, that people are shown; `--json` has them all."""
STOPS = 10


@click.command("plan", epilog=examples("calque plan", "calque plan --target dr --upto 812 --json"))
@targets_option
@click.option("--upto", metavar="EVENT_ID", type=EVENT_ID, help="End the window there.  [default: the journal's end]")
@shared
@click.pass_obj
def command(settings: CommandSettings, targets: Sequence[str], upto: int | None) -> int:
    """Show what the next window would do; changes nothing.

    Events, what was coalesced, hops, bridges, files and bytes. Works while `calque run` runs, and when it does not.
    """
    config = settings.load()
    return run(settings, config, config.select(targets), upto)


def run(settings: CommandSettings, config: Config, targets: Sequence[str], upto: int | None) -> int:
    """Print the next window of each target, up to `upto`; None for as far as the journal goes and one window does.
    Raises `Refused` where the journal ends before `upto`."""
    import logging

    from calque.commands.output import print_json

    logging.getLogger("calque").addHandler(logging.NullHandler())  # what a window tells its log, the plan says
    wiring = settings.app.wiring(config)
    for name in targets:
        require_captured(wiring, name, upto)
    windows = [explained(wiring, name, upto) for name in targets]
    if settings.json:
        documents = [document(wiring, window) for window in windows]
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for window in windows:
            show(wiring, window)
    return 0


def require_captured(wiring: Wiring, target: str, upto: EventId | None) -> None:
    """Raise `Refused` where the journal that the target follows ends before `upto`."""
    from calque.errors import Refused

    last = wiring.target(target).source.side().journal.last()
    if upto is not None and upto > (last or 0):
        raise Refused(
            f"Event {upto} is not in the journal",
            f"It ends at event {last}" if last is not None else "It has no events yet",
            "Let `calque run` capture it, name an earlier event, or leave --upto out",
        )


def explained(wiring: Wiring, target: str, upto: EventId | None) -> ExplainedWindow:
    """Return what the target's next window would do, up to event `upto` (None: the journal's end), after the target has
    taken up the pauses and requests of operators that wait. A request that the target refuses is left out. Nothing is
    changed at the target or in the state folder."""
    from contextlib import suppress

    from calque.control.pause_rules import chosen_by, rules_of
    from calque.control.requests import open_requests
    from calque.control.window_size import WindowSize
    from calque.engine.replica.dry_run import explain_next_window
    from calque.engine.replica.replica import Replica
    from calque.errors import Refused
    from calque.streams.beginning import beginning_of

    def take_up_all(replica: Replica) -> None:
        replica.hold_back(chosen_by(rules_of(wiring.control, target)))
        for request in open_requests(wiring, target):
            with suppress(Refused):
                replica.take_request(request)

    target_wiring, max_events = wiring.target(target), WindowSize.of(wiring, target).due()
    begin = beginning_of(wiring, target_wiring.plug.source).foreseen
    return explain_next_window(target_wiring.followed(), target_wiring.side(), begin, upto, max_events, take_up_all)


# For programs


def document(wiring: Wiring, window: ExplainedWindow) -> dict[str, Any]:
    """Return the JSON object of a window, as the contract has it. `databases_and_functions` are no hops: they go before
    and after the tables."""
    target = window.target
    return {
        "target": target,
        "from": window.span.after,
        "upto": window.span.upto,
        "events": window.events,
        "groups": [group_of(group) for group in window.groups] + [group_to_read(row) for row in window.reads],
        "databases_and_functions": [
            {
                "name": str(item.name),
                **at_target(wiring, target, item.name),
                "operation": item.operation,
                "to_event": item.to_event,
            }
            for item in window.other_calls
        ],
        "quarantined": [{"table": name_of(row), "reason": row.reason} for row in window.quarantined],
        "hops": sum(len(group.plan.hops) for group in window.groups),
        "calls": calls_of(window),
    }


def group_of(group: ExplainedGroup) -> dict[str, Any]:
    """Return the JSON object of a group. `stops_passed` are the events of the states at which no hop ends, and
    `stops_without_files` those of states whose files are not exactly known. A state that is in the first list alone
    could be shown, and is not, because the hops past it cost less."""
    return {
        "tables": [str(name) for name in group.plan.tables],
        "events": group.plan.events,
        "stops_passed": list(group.plan.stops_passed),
        "stops_without_files": list(group.plan.unvisitable),
        "shows": group.shows,
        "complete": group.complete,
        "hops": [hop_of(hop, cost) for hop, cost in zip(group.plan.hops, group.costs, strict=True)],
        "kept": group.keeps,
        "calls": group.calls,
        "files": sum(cost.files for cost in group.costs),
        "bytes": sum(cost.bytes for cost in group.costs),
        "reads": [],
    }


def hop_of(hop: Hop, cost: Cost) -> dict[str, Any]:
    return {
        "to_event": hop.to_event,
        "operation": operation_of(hop),
        "table": str(hop.operation.table),
        "objects": hop.objects,
        "bridge": hop.bridge,
        "in_parts": hop.in_parts,
        "calls": cost.calls,
        "files": cost.files,
        "bytes": cost.bytes,
        **({"tables": [str(name) for name in tables]} if len(tables := tables_of(hop)) > 1 else {}),
    }


def operation_of(hop: Hop) -> str:
    """Return the name of the hop's operation in outputs. An alteration that changes the table's name is a
    `rename_table`."""
    from calque.model.plan import (
        AddPartitions,
        AlterPartitions,
        AlterTable,
        CommitRows,
        CommitTable,
        CreateTable,
        DropPartitions,
        DropTable,
        HiddenBuild,
        PrepareFlipSweep,
        Publish,
        Rebuild,
        RenamePartition,
    )

    match hop.operation:
        case CreateTable():
            return "create_table"
        case HiddenBuild():
            return "hidden_build"
        case AlterTable(table, old_name):
            return "alter_table" if old_name == table else "rename_table"
        case DropTable():
            return "drop_table"
        case AddPartitions():
            return "add_partitions"
        case AlterPartitions():
            return "alter_partitions"
        case RenamePartition():
            return "rename_partition"
        case DropPartitions():
            return "drop_partitions"
        case Publish():
            return "publish"
        case PrepareFlipSweep():
            return "prepare_flip_sweep"
        case Rebuild():
            return "rebuild"
        case CommitTable():
            return "commit_table"
        case CommitRows():
            return "commit_rows"
    assert_never(hop.operation)


def tables_of(hop: Hop) -> list[TableName]:
    """Return the tables that the hop changes at one moment, the first of them the operation's own."""
    from calque.model.plan import CommitRows

    operation = hop.operation
    return [rows.table for rows in operation.tables] if isinstance(operation, CommitRows) else [operation.table]


def group_to_read(row: TableRow) -> dict[str, Any]:
    """Return the JSON object of a table that the window passes by, because it has to be read exactly first. Its numbers
    are 0, because what the read will find is not known."""
    reads = [{"table": name_of(row), "since_event": row.since_event, "reason": row.reason}]
    no_work = {"events": 0, "stops_passed": [], "hops": [], "calls": 0, "files": 0, "bytes": 0}
    return {"tables": [name_of(row)], **no_work, "reads": reads}


def name_of(row: TableRow) -> str:
    return f"{row.database}.{row.table}"


def at_target(wiring: Wiring, target: str, name: TableName) -> dict[str, str]:
    """Return the name of a database or function at the target below `at_target`; nothing where it has the same name
    there."""
    name_at_target = wiring.config.target(target).admission().name_at_target(name)
    return {"at_target": str(name_at_target)} if name_at_target != name else {}


def calls_of(window: ExplainedWindow) -> int:
    return sum(group.calls for group in window.groups) + len(window.other_calls)


# For people


def show(wiring: Wiring, window: ExplainedWindow) -> None:
    from calque.commands.output import print_line, print_table

    print_line(summary(window))
    for note in circumstances(wiring, window):
        print_line(f"{window.target}: {note}")
    all_hop_rows = [row for group in window.groups for row in hop_rows(group)]
    call_rows = [(call.name, call.to_event, call.operation, 1, 1, 0, 0, None) for call in window.other_calls]
    if all_hop_rows or call_rows:
        print_table(HEADINGS, [*call_rows[:ROWS], *all_hop_rows[:ROWS]])
    for kind in (call_rows, all_hop_rows):
        if len(kind) > ROWS:
            print_line(f"and {len(kind) - ROWS} more: --json shows all")
    lines = [line for group in window.groups for line in stops(group)]
    lines += [f"{name_of(row)} will be read exactly, beside the window: {row.reason}" for row in window.reads]
    lines += [f"{name_of(row)} is quarantined and stays as it is: {row.reason}" for row in window.quarantined]
    for line in lines[:ROWS]:
        print_line(line)
    if len(lines) > ROWS:
        print_line(f"and {len(lines) - ROWS} more: --json shows all")


def summary(window: ExplainedWindow) -> str:
    hops = sum(len(group.plan.hops) for group in window.groups)
    files = sum(cost.files for group in window.groups for cost in group.costs)
    size = sum(cost.bytes for group in window.groups for cost in group.costs)
    bridges = sum(hop.bridge for group in window.groups for hop in group.plan.hops)
    phrases = [
        f"{window.target}: from event {window.span.after} to {window.span.upto}: {counted(window.events, 'event')}",
        counted(hops, "hop"),
        counted(calls_of(window), "call"),
        f"{counted(files, 'file')} ({size} bytes) to copy",
        *([counted(bridges, "bridge")] if bridges else []),
        *([f"{counted(len(window.reads), 'table')} to be read"] if window.reads else []),
    ]
    return ", ".join(phrases)


def circumstances(wiring: Wiring, window: ExplainedWindow) -> list[str]:
    """Return lines about what else decides what happens next: a bootstrap, the rest of the journal, a pause."""
    from calque.control.pause_rules import is_paused

    notes, last = [], wiring.target(window.target).source.side().journal.last()
    if not window.began:
        notes.append(
            "it begins with a bootstrap: every table is read exactly; what is equal already is not copied again"
        )
    if last is None:
        notes.append("the journal has no events yet; `calque run` captures them")
    elif last > window.span.upto:
        notes.append(f"the journal goes on to event {last}, for later windows")
    if is_paused(wiring.control, window.target):
        notes.append(f"it is paused, and nothing happens before `calque resume --target {window.target}`")
    return notes


def hop_rows(group: ExplainedGroup) -> list[tuple[object, ...]]:
    from calque.model.plan import PrepareFlipSweep

    rows: list[tuple[object, ...]] = []
    for hop, cost in zip(group.plan.hops, group.costs, strict=True):
        is_kept = group.keeps and hop == group.plan.hops[-1]
        others = tables_of(hop)[1:]
        remarks = [
            *(["bridge: no single operation leads there and no state between is known"] if hop.bridge else []),
            *([f"in {hop.in_parts} parts: more than one call takes"] if hop.in_parts > 1 else []),
            *([f"in one moment with {', '.join(map(str, others))}"] if others else []),
            *(["the list of partitions is early"] if isinstance(hop.operation, PrepareFlipSweep) else []),
            *(['not done: drops = "keep"'] if is_kept else []),
        ]
        numbers = (cost.calls, cost.files, cost.bytes)
        labels = (hop.operation.table, hop.to_event, operation_of(hop), objects_of(hop))
        rows.append((*labels, *numbers, "; ".join(remarks) or None))
    return rows


def objects_of(hop: Hop) -> int | str:
    """Return the number of the hop's objects; the partition's name where it is a single partition."""
    from calque.core.plan.cost import cells

    names = [name for (_, name), _ in cells(hop.operation) if name]
    return names[0] if len(names) == 1 else hop.objects


def stops(group: ExplainedGroup) -> list[str]:
    """Return lines about the states that a group passes over, and about what it waits for."""
    plan, lines = group.plan, []
    name = ", ".join(map(str, plan.tables))
    without = set(plan.unvisitable)
    cheaper = [event for event in plan.stops_passed if event not in without]
    unknown = [event for event in plan.stops_passed if event in without]
    if not plan.hops and group.complete:
        lines.append(f"{name}: {counted(plan.events, 'event')} and no hop: it shows the last state already")
    if cheaper:
        lines.append(f"{name}: passes over the states after {ids(cheaper)}: fewer hops lead past them")
    if unknown:
        lines.append(f"{name}: passes over the states after {ids(unknown)}: their files are not exactly known")
    if not group.complete:
        lines.append(
            f"{name}: waits at event {group.shows}: which files its newest state has is not known yet; "
            "if that stays so, the table is read exactly"
        )
    return lines


def ids(events: Sequence[EventId]) -> str:
    shown = ", ".join(map(str, events[:STOPS]))
    remainder = f" and {len(events) - STOPS} more" if len(events) > STOPS else ""
    return f"{'event' if len(events) == 1 else 'events'} {shown}{remainder}"
