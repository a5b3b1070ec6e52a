"""The process around the streams: the only one of its roles, ended by signals, told what it waits for."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from calque.config import load
from calque.core.standing import Standing, standing
from calque.engine.failpoints import NAMES
from calque.errors import Refused, Unavailable
from calque.journals import agree
from calque.model.names import EventId
from calque.reloading import Reread
from calque.roles import Roles, roles
from calque.streams import Run
from calque.supported import unsupported
from calque.wiring import Wiring

EXIT_WITHOUT = 75


def run_job(
    wiring: Wiring,
    targets: Sequence[str],
    until: str | int | None,
    *,
    capture: bool = True,
    reread: Reread | None = None,
) -> int:
    """Run capture and the targets until a signal, or until every target shows `until`. The exit code; raises what
    ended a part. Capture and targets may be spread over processes with one state folder, each in one of them. On
    SIGHUP, or when `calque reload` asks, the configuration is read again as `reread` says."""
    log_to_stderr()
    require_known_failpoint()
    for refusal in unsupported(wiring.config):
        raise refusal
    with Roles(wiring.state) as held:
        for role in roles(targets, capture=capture):
            held.take(role)
        agree(wiring.config, wiring.control)
        goal = goal_of(wiring, until)
        run = Run(wiring, targets, capture, held, reread)
        with ended_by_signals(run.stopping), reloading_on_hangup(run.presence.asked):
            try:
                run.start()
                found = run.wait(goal)
            finally:
                run.stop()
    if found is not Standing.WITHOUT or goal is None:
        return 0
    for name in run.targets:
        ledger = run.wiring.ledger(name)
        epoch = ledger.last_epoch()
        reached = standing(epoch.event_id if epoch else None, ledger.tables().values(), goal)
        if reached.missing:
            raise Unavailable(
                f"{name} shows event {goal} without {', '.join(reached.missing)}",
                "these tables are set aside",
                "See `calque quarantine list`",
            )
    return EXIT_WITHOUT


def run_file(path: str, named: Sequence[str] | None, until: str | int | None, *, capture: bool) -> int:
    """`run_job` as the file says, with the `named` targets: all where none is named, and with None no target."""
    config = load(path)
    targets = () if named is None else config.select(named)
    return run_job(Wiring(config), targets, until, capture=capture, reread=Reread(lambda: load(path), named))


def goal_of(wiring: Wiring, until: str | int | None) -> EventId | None:
    if isinstance(until, str):
        return wiring.source().log.current()
    return until


@contextmanager
def ended_by_signals(stopping: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT ask to stop; a second one ends at once."""

    def stop(number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def reloading_on_hangup(asked: threading.Event) -> Iterator[None]:
    """SIGHUP asks to read the configuration again."""
    before = signal.signal(signal.SIGHUP, lambda _number, _frame: asked.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def require_known_failpoint() -> None:
    name = os.environ.get("CALQUE_FAILPOINT", "").partition("@")[0]
    if name and name not in NAMES:
        raise Refused(f"There is no failpoint {name}", "CALQUE_FAILPOINT names it", f"Known: {', '.join(NAMES)}")


def log_to_stderr() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("calque").setLevel(logging.INFO)
