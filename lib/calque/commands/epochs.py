"""The command `calque epochs`, which prints the epochs of a target's ledger and what they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import (
    Commands,
    CommandSettings,
    complete_epochs,
    epoch_reference,
    examples,
    need_command,
    one_target_option,
    shared,
)
from calque.control.epoch_rows import EpochReference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    return list_epochs(settings, targets)


@command.command("show", epilog=examples("calque epochs show 57", "calque epochs show @812 --target dr"))
@click.argument("epoch", metavar="N", type=epoch_reference, shell_complete=complete_epochs)
@one_target_option
@shared
@click.pass_obj
def show_command(settings: CommandSettings, epoch: EpochReference, targets: Sequence[str]) -> int:
    """Show what epoch N changed; @N is an event id."""
    return show(settings, targets, epoch)


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
    return diff(settings, targets, before, after)


def list_epochs(settings: CommandSettings, targets: Sequence[str]) -> int:
    from calque.commands.output import print_json, print_table

    rows = settings.answer_for_one("epochs list", targets)
    if settings.json:
        print_json(rows)
    else:
        from calque.control.epoch_rows import EPOCH_FIELDS

        print_table([name.replace("_", " ") for name in EPOCH_FIELDS], [row.values() for row in rows])
    return 0


def show(settings: CommandSettings, targets: Sequence[str], epoch: EpochReference) -> int:
    from calque.commands.output import print_json, print_line, print_table

    document = settings.answer_for_one("epochs show", targets, epoch=epoch)
    if settings.json:
        print_json(document)
        return 0
    objects = document.pop("objects")
    for name, value in document.items():
        print_line(f"{name.replace('_', ' ')}: {shown(value)}")
    print_table(
        ("object", "change", "event id", "files", "location"),
        [(label(row), row["change"], row["event_id"], len(row["files"]), row["location"] or None) for row in objects],
    )
    return 0


def diff(settings: CommandSettings, targets: Sequence[str], before: EpochReference, after: EpochReference) -> int:
    """Print what changed after epoch `before`, up to and including epoch `after`. Raises `Refused` where `before` comes
    after `after`, or where there is no such epoch."""
    from collections import Counter

    from calque.commands.output import counted, print_json, print_line, print_table, tallied

    document = settings.answer_for_one("epochs diff", targets, before=before, after=after)
    if settings.json:
        print_json(document)
        return 0
    first, last = document["from"], document["to"]
    amounts = [counted(document[f"{noun}s"], noun) for noun in ("event", "hop", "file")]
    totals = ", ".join([*amounts, f"{document['bytes']} bytes"])
    print_line(
        f"{document['target']}: epoch {first['epoch']} (event {first['event_id']}) to epoch {last['epoch']} "
        f"(event {last['event_id']}): {totals}"
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
            for row in document["objects"]
        ],
    )
    return 0


def label(row: Mapping[str, Any]) -> str:
    note = f" (there {row['at_target']})" if "at_target" in row else ""
    return f"{row['table']}{note}" + (f" {row['partition']}" if row["partition"] else "")


def shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return str(value) if value not in ("", None) else "-"
