"""The command `calque wait`, which returns when a target has reached an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import EVENT_ID, CommandSettings, duration, examples, shared, target_option

if TYPE_CHECKING:
    from calque.config import Config


POLL_SECONDS = 0.05


@click.command("wait", epilog=examples("calque wait --target dr --event-id 812 --timeout 5m"))
@target_option
@click.option("--event-id", metavar="N", type=EVENT_ID, required=True, help="The event to wait for.")
@click.option("--timeout", metavar="S", type=duration, help="Give up after that long.  [default: never]")
@shared
@click.pass_obj
def command(settings: CommandSettings, target: str, event_id: int, timeout: float | None) -> int:
    """Wait until a target has reached an event.

    Returns as soon as the target's position is at least N. Exit 75 on time-out, or when only quarantined or lastingly
    waiting tables are missing.
    """
    config = settings.load()
    config.select((target,))
    return run(settings, config, target, event_id, timeout)


def run(settings: CommandSettings, config: Config, target: str, event_id: int, timeout: float | None) -> int:
    """Wait until the target has reached the event. `timeout` is seconds, None for ever. Raises `Unavailable` after
    `timeout`, where tables that are set aside are missing, and where the target is paused."""
    import time

    from calque.commands.output import print_json
    from calque.control.waiting import EventWait

    wait = EventWait(settings.app.wiring(config), target, event_id)
    deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
    while not (waited := wait.look()).has_reached:
        if time.monotonic() >= deadline:
            raise wait.late(waited, timeout or 0.0)
        time.sleep(POLL_SECONDS)
    if settings.json:
        print_json({"target": target, "event_id": event_id, "position": waited.position})
    return 0
