"""The command `calque bootstrap`, which has tables read again exactly while the stream goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared, tables_option, target_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.command(
    "bootstrap", epilog=examples("calque bootstrap --target dr", "calque bootstrap --target dr --tables 'sales.*'")
)
@target_option
@tables_option
@shared
@click.pass_obj
def command(settings: CommandSettings, target: str, tables: Sequence[str]) -> int:
    """Read tables again, exactly, while the stream goes on.

    Marks them as unknown; `calque run` does the reading.
    """
    config = settings.load()
    config.select((target,))
    return run(settings, config, target, tables)


def run(settings: CommandSettings, config: Config, target: str, tables: Sequence[str]) -> int:
    """Leave the request that the tables are read again. `tables` are patterns; none stands for all tables."""
    from calque.commands.output import print_json
    from calque.control.requests import leave_request
    from calque.model.requests import Action

    leave_request(settings.app.wiring(config), target, Action.BOOTSTRAP, tables)
    if settings.json:
        print_json({"target": target, "tables": list(tables)})
    return 0
