"""The command `calque adopt`, which takes over objects at a target that calque did not make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, complete_tables, examples, pattern, shared, target_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.command("adopt", epilog=examples("calque adopt --target dr --tables hr.staff"))
@target_option
@click.option(
    "--tables",
    metavar="PATTERN",
    type=pattern,
    multiple=True,
    required=True,
    shell_complete=complete_tables,
    help="Tables, named as at the source; may be repeated.",
)
@shared
@click.pass_obj
def command(settings: CommandSettings, target: str, tables: Sequence[str]) -> int:
    """Take over objects at the target that are not ours.

    Without it such objects are never overwritten or dropped, and their tables are quarantined. With it they become
    replicas where they lie: what has the same size and checksum is not copied again, what differs is replaced, extra
    partitions go. Replicas of another calque's source are taken over, too. A pattern for a whole database takes over
    the database itself and its functions. What the source does not have is left alone.
    """
    config = settings.load()
    config.select((target,))
    return run(settings, config, target, tables)


def run(settings: CommandSettings, config: Config, target: str, tables: Sequence[str]) -> int:
    from calque.commands.output import print_json, print_line
    from calque.control.requests import leave_request
    from calque.control.status_records import is_running
    from calque.model.requests import Action

    wiring = settings.app.wiring(config)
    leave_request(wiring, target, Action.ADOPT, tables)
    if settings.json:
        print_json({"target": target, "tables": list(tables)})
    else:
        moment = "now" if is_running(wiring, target) else "as soon as `calque run` runs"
        print_line(f"{target}: {', '.join(tables)}: taken over {moment}, and read exactly; see `calque status`")
    return 0
