"""`calque reload`: have the running `run` read its configuration again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import Settings, examples, not_built, shared

if TYPE_CHECKING:
    from calque.config import Config


@click.command("reload", epilog=examples("calque reload", "calque reload -c /etc/calque/dr.toml"))
@shared
@click.pass_obj
def command(settings: Settings) -> int:
    """Have a running `calque run` read its configuration.

    Policies and targets are taken over. The file is checked here first; a wrong one changes nothing.
    """
    return run(settings, settings.load())


def run(settings: Settings, config: Config) -> int:
    not_built("reload", settings, config)
