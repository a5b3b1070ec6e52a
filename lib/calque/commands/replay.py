"""The command `calque replay`, which has all tables read again that were touched after an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import (
    EVENT_ID,
    CommandSettings,
    complete_event_ids,
    examples,
    shared,
    tables_option,
    target_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.command(
    "replay",
    epilog=examples("calque replay --target dr --from 700", "calque replay --target dr --from 700 --tables sales.x"),
)
@target_option
@click.option(
    "--from",
    "after",
    metavar="EVENT_ID",
    type=EVENT_ID,
    required=True,
    shell_complete=complete_event_ids,
    help="Forget what came after it.",
)
@tables_option
@shared
@click.pass_obj
def command(settings: CommandSettings, target: str, after: int, tables: Sequence[str]) -> int:
    """Forget what came after an event, and converge again.

    Looks at everything touched since that event, files included, and converges forward; an older state is never
    shown. Refused when the journal no longer reaches back.
    """
    config = settings.load()
    config.select((target,))
    return run(settings, config, target, after, tables)


def run(settings: CommandSettings, config: Config, target: str, after: int, tables: Sequence[str]) -> int:
    """Leave the request to replay, and print which tables were touched after event `after`. `tables` are patterns; none
    stands for all. Raises `Refused` where the journal does not reach back."""
    from calque.commands.output import counted, print_json, print_line
    from calque.control.requests import leave_request
    from calque.control.status_records import is_running
    from calque.core.policy.patterns import chosen
    from calque.engine.replica.replay import tables_of, touched
    from calque.model.requests import Action

    wiring = settings.app.wiring(config)
    target_wiring = wiring.target(target)
    source, admission = target_wiring.followed(), target_wiring.admission()
    entries = touched(source, after, source.journal.last() or 0)
    names = sorted(str(name) for name in tables_of(entries, chosen(tables)) if admission.takes(name))
    leave_request(wiring, target, Action.REPLAY, tables, after)
    if settings.json:
        print_json({"target": target, "from": after, "tables": names})
    else:
        touched_tables = f"{counted(len(names), 'table')} {'was' if len(names) == 1 else 'were'} touched"
        moment = "now" if is_running(wiring, target) else "as soon as `calque run` runs"
        print_line(f"{target}: {touched_tables} after event {after}: read again {moment}")
    return 0
