"""The command `calque release-drops`, which lets a target drop tables and partitions that the source lost without an
event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared, tables_option, target_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.command(
    "release-drops",
    epilog=examples("calque release-drops --target dr", "calque release-drops --target dr --tables 'sales.*'"),
)
@target_option
@tables_option
@shared
@click.pass_obj
def command(settings: CommandSettings, target: str, tables: Sequence[str]) -> int:
    """Let a target drop what its source lost without an event.

    After a gap in the log, or a bootstrap, what the target has and the source has not is dropped; when that is more
    than max_drop, or all of a database, or when the log went back, such tables are set aside instead until this is
    asked for. They are compared anew then: what the source has by that time is kept. `calque run` does it, now or at
    its next start.
    """
    config = settings.load()
    config.select((target,))
    return run(settings, config, target, tables)


def run(settings: CommandSettings, config: Config, target: str, tables: Sequence[str]) -> int:
    """Leave the request that waiting drops are made, and print the tables that wait. `tables` are patterns; none stands
    for all that wait."""
    from calque.commands.output import print_json, print_line
    from calque.control.requests import leave_request
    from calque.core.policy.patterns import chosen
    from calque.model.ledger import NotLiveReason, TableRow
    from calque.model.requests import Action

    wiring, takes = settings.app.wiring(config), chosen(tables)
    rows = [row for row in wiring.ledger(target).tables().values() if isinstance(row, TableRow)]
    names = sorted(row.name for row in rows if row.why is NotLiveReason.HELD and takes(row.name))
    leave_request(wiring, target, Action.RELEASE_DROPS, tables)
    if settings.json:
        print_json({"target": target, "tables": [str(name) for name in names]})
    else:
        print_line(f"{target}: {', '.join(map(str, names)) or 'no table waits by now'}")
    return 0
