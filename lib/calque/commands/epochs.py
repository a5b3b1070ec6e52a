"""The command `calque epochs`, which prints the epochs of a target's ledger and what they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import (
    Commands,
    CommandSettings,
    EpochReference,
    complete_epochs,
    epoch_reference,
    examples,
    need_command,
    one_target_option,
    shared,
)
from calque.model.names import TableName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calque.config import Config
    from calque.model.ledger import Epoch, ObjectRow
    from calque.wiring.wiring import Wiring


@click.group(
    "epochs", cls=Commands, epilog=examples("calque epochs list", "calque epochs show 57", "calque epochs diff 57 @812")
)
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """Read the ledger: list epochs, show one, compare two.

    N is an epoch's number, @N an event id.
    """
    need_command(context)


@command.command("list", epilog=examples("calque epochs list", "calque epochs list --target dr --json"))
@one_target_option
@shared
@click.pass_obj
def list_command(settings: CommandSettings, targets: Sequence[str]) -> int:
    """List epochs, oldest first."""
    config, target = settings.load_for_one(targets)
    return list_epochs(settings, config, target)


@command.command("show", epilog=examples("calque epochs show 57", "calque epochs show @812 --target dr"))
@click.argument("epoch", metavar="N", type=epoch_reference, shell_complete=complete_epochs)
@one_target_option
@shared
@click.pass_obj
def show_command(settings: CommandSettings, epoch: EpochReference, targets: Sequence[str]) -> int:
    """Show what epoch N changed; @N is an event id."""
    config, target = settings.load_for_one(targets)
    return show(settings, config, target, epoch)


@command.command("diff", epilog=examples("calque epochs diff 57 60", "calque epochs diff @700 @812 --target dr"))
@click.argument("before", metavar="A", type=epoch_reference, shell_complete=complete_epochs)
@click.argument("after", metavar="B", type=epoch_reference, shell_complete=complete_epochs)
@one_target_option
@shared
@click.pass_obj
def diff_command(
    settings: CommandSettings, before: EpochReference, after: EpochReference, targets: Sequence[str]
) -> int:
    """Show what changed from epoch A to epoch B; @N is an event id."""
    config, target = settings.load_for_one(targets)
    return diff(settings, config, target, before, after)


def list_epochs(settings: CommandSettings, config: Config, target: str) -> int:
    from calque.commands.output import print_json, print_table
    from calque.control.epoch_rows import EPOCH_FIELDS, epoch_row

    rows = [epoch_row(epoch) for epoch in settings.app.wiring(config).ledger(target).epochs()]
    if settings.json:
        print_json(rows)
    else:
        print_table([name.replace("_", " ") for name in EPOCH_FIELDS], [row.values() for row in rows])
    return 0


def show(settings: CommandSettings, config: Config, target: str, epoch: EpochReference) -> int:
    from calque.commands.output import print_json, print_line, print_table
    from calque.control.epoch_rows import epoch_row

    wiring = settings.app.wiring(config)
    ledger = wiring.ledger(target)
    chosen_epoch = find(ledger.epochs(), epoch, target)
    objects = [object_of(row, wiring, target) for row in ledger.objects(chosen_epoch.epoch)]
    if settings.json:
        print_json({**epoch_row(chosen_epoch), **rest_of(chosen_epoch), "objects": objects})
        return 0
    for name, value in {**epoch_row(chosen_epoch), **rest_of(chosen_epoch)}.items():
        print_line(f"{name.replace('_', ' ')}: {shown(value)}")
    print_table(
        ("object", "change", "event id", "files", "location"),
        [(label(row), row["change"], row["event_id"], len(row["files"]), row["location"] or None) for row in objects],
    )
    return 0


def diff(settings: CommandSettings, config: Config, target: str, before: EpochReference, after: EpochReference) -> int:
    """Print what changed after epoch `before`, up to and including epoch `after`. Raises `Refused` where `before` comes
    after `after`, or where there is no such epoch."""
    from collections import Counter

    from calque.commands.output import counted, print_json, print_line, print_table, tallied
    from calque.control.epoch_rows import epoch_row
    from calque.errors import Refused

    wiring = settings.app.wiring(config)
    ledger = wiring.ledger(target)
    epochs = ledger.epochs()
    first, last = find(epochs, before, target), find(epochs, after, target)
    if first.epoch > last.epoch:
        problem = f"Epoch {first.epoch} comes after epoch {last.epoch}"
        raise Refused(problem, "A difference goes forward", f"Write calque epochs diff {last.epoch} {first.epoch}")
    between = [epoch for epoch in epochs if first.epoch < epoch.epoch <= last.epoch]
    objects = changes([(epoch.epoch, row) for epoch in between for row in ledger.objects(epoch.epoch)], wiring, target)
    totals = {name: sum(getattr(epoch, name) for epoch in between) for name in ("events", "hops", "files", "bytes")}
    document = {"target": target, "from": epoch_row(first), "to": epoch_row(last), **totals, "objects": objects}
    if settings.json:
        print_json(document)
        return 0
    print_line(
        f"{target}: epoch {first.epoch} (event {first.event_id}) to epoch {last.epoch} (event {last.event_id}): "
        + ", ".join(
            f"{value} bytes" if name == "bytes" else counted(value, name[:-1]) for name, value in totals.items()
        )
    )
    print_table(
        ("object", "changes", "files", "location"),
        [
            (
                label(row),
                tallied(Counter(change["change"] for change in row["changes"])),
                None if row["files"] is None else len(row["files"]),
                row["location"] or None,
            )
            for row in objects
        ],
    )
    return 0


GONE = frozenset({"drop_table", "drop_partition", "rename_away"})
"""Changes after which an object is no longer there under its name."""


def rest_of(epoch: Epoch) -> dict[str, Any]:
    """Return the fields of an epoch that lists leave out."""
    names = ("events", "calls", "in_parts", "rebasing", "set_aside", "disarmed", "digest", "previous_digest")
    gap = {"from": epoch.gap[0], "to": epoch.gap[1]} if epoch.gap is not None else None
    return {**{name: getattr(epoch, name) for name in names}, "gap": gap}


def object_of(row: ObjectRow, wiring: Wiring, target: str) -> dict[str, Any]:
    return {
        **named(TableName(row.database, row.table), row.partition, wiring, target),
        "incarnation": row.incarnation,
        "event_id": row.event_id,
        "change": row.change,
        "location": row.location,
        "files": [{"path": file.path, "size": file.size, "checksum": file.checksum} for file in row.files],
        "delta_version": row.delta_version,
    }


def changes(rows: Sequence[tuple[int, ObjectRow]], wiring: Wiring, target: str) -> list[dict[str, Any]]:
    """Return each changed object with its changes, oldest first; `rows` come with the numbers of their epochs. `files`
    and `location` are what the object has at the end: null where it is gone, or where no change says."""
    grouped: dict[tuple[TableName, str], list[tuple[int, ObjectRow]]] = {}
    for epoch, row in rows:
        grouped.setdefault((TableName(row.database, row.table), row.partition), []).append((epoch, row))
    documents = []
    for (table, partition), object_rows in sorted(grouped.items()):
        object_rows.sort(key=lambda pair: (pair[0], pair[1].event_id))
        is_gone = object_rows[-1][1].change in GONE
        last_row = None if is_gone else next((row for _, row in reversed(object_rows) if row.location), None)
        documents.append(
            {
                **named(table, partition, wiring, target),
                "changes": [
                    {"epoch": epoch, "event_id": row.event_id, "change": row.change} for epoch, row in object_rows
                ],
                "gone": is_gone,
                "location": last_row.location if last_row else None,
                "files": [{"path": file.path, "size": file.size, "checksum": file.checksum} for file in last_row.files]
                if last_row
                else None,
            }
        )
    return documents


def named(table: TableName, partition: str, wiring: Wiring, target: str) -> dict[str, Any]:
    """Return an object's name at the source, and its name at the target where that differs."""
    name_at_target = wiring.config.target(target).admission().name_at_target(table)
    return {
        "table": str(table),
        **({"at_target": str(name_at_target)} if name_at_target != table else {}),
        "partition": partition or None,
    }


def label(row: Mapping[str, Any]) -> str:
    note = f" (there {row['at_target']})" if "at_target" in row else ""
    return f"{row['table']}{note}" + (f" {row['partition']}" if row["partition"] else "")


def shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return str(value) if value not in ("", None) else "-"


def find(epochs: Sequence[Epoch], reference: EpochReference, target: str) -> Epoch:
    """Return the epoch that `reference` names: the one of a number, or the newest at or below an event. Raises
    `Refused` where there is none."""
    from calque.errors import Refused

    if not epochs:
        raise Refused(f"{target} has no epochs yet", "Nothing was published", "Start `calque run`")
    if reference.is_event:
        matches = [epoch for epoch in epochs if epoch.event_id <= reference.number]
    else:
        matches = [epoch for epoch in epochs if epoch.epoch == reference.number]
    if matches:
        return matches[-1]
    name = f"no epoch at or below event {reference.number}" if reference.is_event else f"no epoch {reference.number}"
    first, last = epochs[0], epochs[-1]
    raise Refused(
        f"{target} has {name}",
        f"There are epochs {first.epoch} to {last.epoch}, of events {first.event_id} to {last.event_id}; older ones "
        "are forgotten after `grace`",
        "Name one of them",
    )
