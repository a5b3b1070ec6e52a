"""`calque adopt`: take over objects at the target that are not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import Settings, examples, not_built, pattern, shared, target_option

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
    help="Tables, named as at the source; may be repeated.",
)
@shared
@click.pass_obj
def command(settings: Settings, target: str, tables: Sequence[str]) -> int:
    """Take over objects at the target that are not ours.

    Without it such objects are never overwritten or dropped, and their tables are quarantined.
    """
    config = settings.load()
    config.select((target,))
    return run(settings, config, target, tables)


def run(settings: Settings, config: Config, target: str, tables: Sequence[str]) -> int:
    not_built("adopt", settings, config, target, tables)
