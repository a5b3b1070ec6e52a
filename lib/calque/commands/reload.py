"""`calque reload`: have the running `run` read its configuration again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config
    from calque.control.processes import Process
    from calque.ports.records import Records

POLL_SECONDS = 0.1
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
    from calque.control.processes import ask_reload
    from calque.errors import Refused, Unavailable
    from calque.wiring.wiring import Wiring

    control = Wiring(config).control
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


def answers(control: Records, request: str, seconds: float) -> Sequence[Process]:
    """The processes that run, when all of them have answered; those that end meanwhile need not. Raises
    `Unavailable`."""
    import time

    from calque.control.processes import processes
    from calque.errors import Unavailable

    deadline = time.monotonic() + seconds
    while True:
        running_processes = processes(control)
        silent = [str(process.pid) for process in running_processes if process.answer.id != request]
        if not silent:
            return running_processes
        if time.monotonic() > deadline:
            raise Unavailable(
                f"Process {', '.join(silent)} did not take the configuration over in {seconds:g} s",
                "It is busy, or hangs",
                "Look at its log, and at `calque status`",
            )
        time.sleep(POLL_SECONDS)
