"""`calque sql`: replication statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, not_built, shared

if TYPE_CHECKING:
    from calque.config import Config


@click.command("sql", epilog=examples("calque sql 'REPL STATUS sales'", "calque sql 'USE CLUSTER dr' --json"))
@click.argument("statement")
@shared
@click.pass_obj
def command(settings: CommandSettings, statement: str) -> int:
    """Run a replication statement.

    REPL DUMP, LOAD and STATUS, CREATE REMOTE, USE CLUSTER, MARK SET DONE.
    """
    return run(settings, settings.load(), statement)


def run(settings: CommandSettings, config: Config, statement: str) -> int:
    not_built("sql", settings, config, statement)
