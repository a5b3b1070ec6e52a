"""The commands `calque pause` and `calque resume`, which hold tables or targets back and let them go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared, tables_option, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config
    from calque.wiring.wiring import Wiring


@click.command("pause", epilog=examples("calque pause", "calque pause --target dr --tables 'sales.*'"))
@targets_option
@tables_option
@shared
@click.pass_obj
def pause_command(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Hold targets or tables back.

    Takes effect on a running `calque run` within two seconds, and lasts across restarts. Paused tables stay as they
    are, and what a rename links to them waits too; everything else goes on.
    """
    config = settings.load()
    return pause(settings, config, config.select(targets), tables)


@click.command("resume", epilog=examples("calque resume", "calque resume --target dr --tables 'sales.*'"))
@targets_option
@tables_option
@shared
@click.pass_obj
def resume_command(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Let paused targets or tables go on.

    Of all patterns that were paused or resumed the last one that matches a table counts; '*.*' lets all go on.
    """
    config = settings.load()
    return resume(settings, config, config.select(targets), tables)


def pause(settings: CommandSettings, config: Config, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Pause tables of the targets that match `tables`; the targets themselves where none is given. Print what is paused
    then."""
    from calque.control import actions

    wiring = settings.app.wiring(config)
    for name in targets:
        actions.pause(wiring, name, tables)
    tell(settings, wiring, targets)
    return 0


def resume(settings: CommandSettings, config: Config, targets: Sequence[str], tables: Sequence[str]) -> int:
    """Let tables of the targets that match `tables` go on; the targets themselves where none is given, though tables
    that are paused by patterns stay so. Print what is paused then."""
    from calque.control import actions

    wiring = settings.app.wiring(config)
    for name in targets:
        actions.resume(wiring, name, tables)
    tell(settings, wiring, targets, left=not tables)
    return 0


def tell(settings: CommandSettings, wiring: Wiring, targets: Sequence[str], *, left: bool = False) -> None:
    """Print what is paused of the targets now; with `left` also that patterns of tables stay paused, and what lets them
    go on."""
    from calque.commands.output import print_json, print_line
    from calque.control.pause_rules import PauseAction, is_paused, rules_of

    control = wiring.control
    if settings.json:
        rows = [
            {
                "target": name,
                "paused": is_paused(control, name),
                "rules": [{"rule": rule.value, "tables": pattern} for rule, pattern in rules_of(control, name)],
            }
            for name in targets
        ]
        print_json(rows)
        return
    for name in targets:
        state = "paused" if is_paused(control, name) else "running"
        rules = ", ".join(f"{rule.value} {pattern}" for rule, pattern in rules_of(control, name))
        if rules or state == "paused":
            print_line(f"{name}: {state}{rules and f'; tables: {rules}'}")
        for rule, pattern in rules_of(control, name) if left else ():
            if rule is PauseAction.PAUSE:
                print_line(f"{pattern} stays paused: calque resume --target {name} --tables '{pattern}' lets it go on")
