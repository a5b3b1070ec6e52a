"""The command `calque quarantine`, which lists tables that were set aside and has them read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import (
    Commands,
    CommandSettings,
    examples,
    need_command,
    shared,
    tables_option,
    targets_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.group(
    "quarantine",
    cls=Commands,
    epilog=examples("calque quarantine list", "calque quarantine release --target dr --tables sales.x"),
)
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """List tables that were set aside, or release them."""
    need_command(context)


@command.command("list", epilog=examples("calque quarantine list", "calque quarantine list --target dr --json"))
@targets_option
@tables_option
@shared
@click.pass_obj
def list_command(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Show tables that were set aside, since when, and why."""
    return show(settings, targets, tables)


@command.command("release", epilog=examples("calque quarantine release --target dr --tables sales.x"))
@targets_option
@tables_option
@shared
@click.pass_obj
def release_command(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Read tables again that were set aside."""
    config = settings.load()
    return release(settings, config, config.select(targets), tables)


def show(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Print the tables that are set aside. `tables` are patterns; none stands for all tables."""
    from calque.commands.output import print_json, print_table

    rows = settings.answer("quarantine list", targets=targets, tables=tables)
    if settings.json:
        print_json(rows)
    else:
        headings = ("target", "table", "since event", "reason")
        print_table(headings, [(row["target"], row["table"], row["since_event"], row["reason"]) for row in rows])
    return 0


def release(settings: CommandSettings, config: Config, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Leave the request that tables which were set aside are read again. `tables` are patterns; none stands for all of
    them."""
    from calque.commands.output import print_json
    from calque.control.requests import leave_request
    from calque.model.requests import Action

    wiring = settings.app.wiring(config)
    for name in targets:
        leave_request(wiring, name, Action.RELEASE, tables)
    if settings.json:
        print_json({"targets": list(targets), "tables": list(tables)})
    return 0
