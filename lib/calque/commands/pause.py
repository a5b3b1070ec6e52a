"""`calque pause` and `calque resume`: hold tables or targets back, and let them go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from calque.commands.options import Settings, examples, not_built, shared, tables_option, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config


@click.command("pause", epilog=examples("calque pause", "calque pause --target dr --tables 'sales.*'"))
@targets_option
@tables_option
@shared
@click.pass_obj
def pause_command(settings: Settings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Hold targets or tables back.

    Takes effect on a running `calque run` within two seconds, and lasts across restarts.
    """
    config = settings.load()
    return pause(settings, config, config.select(targets), tables)


@click.command("resume", epilog=examples("calque resume", "calque resume --target dr --tables 'sales.*'"))
@targets_option
@tables_option
@shared
@click.pass_obj
def resume_command(settings: Settings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Let paused targets or tables go on."""
    config = settings.load()
    return resume(settings, config, config.select(targets), tables)


def pause(settings: Settings, config: Config, targets: Sequence[str], tables: Sequence[str]) -> int:
    """No `tables` means the targets themselves."""
    from calque.wiring import Wiring

    if tables:
        not_built("pause --tables", settings)
    control = Wiring(config).control
    for name in targets:
        control.put(f"paused/{name}", {"at": time.time()})
    return 0


def resume(settings: Settings, config: Config, targets: Sequence[str], tables: Sequence[str]) -> int:
    """No `tables` means the targets themselves."""
    from calque.wiring import Wiring

    if tables:
        not_built("resume --tables", settings)
    wiring = Wiring(config)
    for name in targets:
        wiring.control.remove(f"paused/{name}")
        wiring.wake(name)
    return 0
