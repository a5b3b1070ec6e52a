"""`calque plan`: what the next window would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import EVENT_ID, Settings, examples, not_built, shared, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.command("plan", epilog=examples("calque plan", "calque plan --target dr --upto 812 --json"))
@targets_option
@click.option("--upto", metavar="EVENT_ID", type=EVENT_ID, help="End the window there.")
@shared
@click.pass_obj
def command(settings: Settings, targets: Sequence[str], upto: int | None) -> int:
    """Show what the next window would do; changes nothing.

    Events, what was coalesced, hops, bridges, files and bytes.
    """
    config = settings.load()
    return run(settings, config, config.select(targets), upto)


def run(settings: Settings, config: Config, targets: Sequence[str], upto: int | None) -> int:
    not_built("plan", settings, config, targets, upto)
