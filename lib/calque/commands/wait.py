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
    from calque.control.pause_rules import goes_on_soon, is_paused
    from calque.control.requests import open_requests
    from calque.control.status_records import position_of
    from calque.core.records.gap_states import dealt_with
    from calque.core.records.reached_state import ReachedState, TargetReachedState, reached_state
    from calque.engine.sides.journal_reads import newest
    from calque.errors import Unavailable

    wiring = settings.app.wiring(config)
    target_wiring = wiring.target(target)
    ledger, gaps = target_wiring.ledger(), target_wiring.source.gaps()
    deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
    while True:
        epoch = ledger.last_epoch()
        position = position_of(wiring, target, epoch)
        # Records first: behind a gap the rows of all tables are written before the record that it is dealt with.
        is_mended = dealt_with(ledger.records()) >= newest(gaps)
        rows = ledger.tables().values()
        reached = reached_state(position, rows, event_id) if is_mended else TargetReachedState(ReachedState.GOING)
        if reached.state is ReachedState.REACHED:
            if settings.json:
                print_json({"target": target, "event_id": event_id, "position": position})
            return 0
        is_without = reached.state is ReachedState.WITHOUT
        if is_without and not open_requests(wiring, target) and not goes_on_soon(wiring.control, target, rows):
            raise Unavailable(
                f"{target} shows event {event_id} without {', '.join(reached.missing)}",
                "These tables are set aside",
                "See `calque status`",
            )
        if is_paused(wiring.control, target):
            problem = f"{target} does not show event {event_id}"
            raise Unavailable(problem, "An operator has paused it", f"Let it go on: calque resume --target {target}")
        if time.monotonic() >= deadline:
            raise Unavailable(
                f"{target} does not show event {event_id} after {timeout:g} s",
                f"Its position is {position}{'' if is_mended else ', and it is being repaired behind a gap in the log'}"
                if position is not None
                else "It has no epoch yet",
                "Look at `calque status`, or wait longer",
            )
        time.sleep(POLL_SECONDS)
