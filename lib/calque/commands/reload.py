"""The command `calque reload`, which has running processes read their configuration again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared

if TYPE_CHECKING:
    from calque.config import Config

PATIENCE_SECONDS = 120.0


@click.command("reload", epilog=examples("calque reload", "calque reload -c /etc/calque/dr.toml"))
@shared
@click.pass_obj
def command(settings: CommandSettings) -> int:
    """Have a running `calque run` read its configuration.

    Policies and targets are taken over. The file is checked here first; a wrong one changes nothing. Returns when every
    process that runs on the state folder has taken it over; SIGHUP asks one process for the same.
    """
    return run(settings, settings.load())


def run(settings: CommandSettings, config: Config) -> int:
    from calque.commands.output import print_json
    from calque.control.processes import answers, ask_reload
    from calque.errors import Refused, Unavailable

    control = settings.app.wiring(config).control
    processes = answers(control, ask_reload(control), PATIENCE_SECONDS)
    if not processes:
        raise Unavailable(
            f"No calque runs on {config.state.path}",
            "Nobody reads the configuration",
            "Start `calque run`: it reads it",
        )
    wrong = sorted({(process.answer.code, process.answer.problem) for process in processes if process.answer.problem})
    for code, problem in wrong:
        raise (Refused if code == Refused.exit_code else Unavailable)(problem)
    if settings.json:
        print_json({"processes": [{"pid": item.pid, "targets": list(item.targets)} for item in processes]})
    return 0
