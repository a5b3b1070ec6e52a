"""The process around the streams: it takes its roles, serves its pages, runs the parts and ends by signals."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn

from calque.config import Config
from calque.config.checks import endpoint
from calque.config.conflicts import taking_nothing, unsupported
from calque.config.serve_keys import Serve
from calque.control.pause_rules import is_paused
from calque.control.process_locks import Roles, roles
from calque.control.question import HttpQuestion
from calque.control.status import snapshot
from calque.control.waiting import EventWait
from calque.core.records.reached_state import ReachedState, reached_state
from calque.engine.check.host import Host, require_host
from calque.engine.failpoints import NAMES, is_known
from calque.errors import AccessRefused, CalqueError, Refused, StateUnusable, Unavailable
from calque.logs.setup import log_to_stderr, report_error
from calque.model.names import EventId
from calque.serve.guard import Tokens
from calque.serve.http import Access, serve
from calque.serve.pages import Pages
from calque.streams.command_socket import CommandSocket
from calque.streams.descriptors import raise_descriptor_limit
from calque.streams.kinds import KERNEL_ALONE, ProcessKinds
from calque.streams.reload import ConfigurationReader
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.signals import ended_by_signals, set_by_handler
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
SEE = "See `calque status`"
HELD_BACK = "an operator has paused it", "Let it go on with `calque resume`"


def run_job(
    wiring: Wiring,
    targets: Sequence[str],
    until: str | int | None,
    stopping: threading.Event,
    *,
    capture: bool = True,
    reread: ConfigurationReader | None = None,
    serve_settings: Serve | None = None,
    kinds: ProcessKinds = KERNEL_ALONE,
) -> int:
    """Run capture and the targets until `stopping` is set, or until every target shows `until`, and return the exit
    code.

    `until` is an event id, "head" for each source's newest event, or None for ever. With `capture` all sources are
    captured. Several processes over one state folder may share sources and targets between them, each in one process
    only. SIGHUP and `calque reload` have `reread` read the configuration again. Health and metrics are served as
    `serve_settings` says. `kinds` is what plugins add to the process.

    Raises `Refused` for a configuration that can't run, `Unavailable` where another process has one of the roles or
    where tables that are set aside are missing at `until`, and the error that ended capture or the targets.
    """
    log_to_stderr(wiring.config.log.format, wiring.config.log.level)
    raise_descriptor_limit()
    require_known_failpoint()
    refusals = (*unsupported(wiring.config), *taking_nothing(wiring.config), *kinds.missing_extras(wiring.config))
    for refusal in refusals:
        raise refusal
    require_host(Host(wiring.folder.folders()))
    wiring.folder.open()
    wiring.folder.require_known_format()
    with Roles(wiring.state) as held_roles:
        if capture and (reread is None or reread.has_all()):
            wiring, targets = watched(wiring, targets, held_roles, stopping, reread, kinds)
        if not held_roles.take(roles(wiring.config, wiring.sources if capture else (), targets), stopping):
            return 0
        wiring = wiring.behind(held_roles)
        for source in wiring.sources.values():
            source.journal_location.agree()
        require_known_ledgers(wiring, targets)
        goal = goals_of(wiring, until)
        run = ReplicatorProcess(wiring, targets, capture, held_roles, reread, kinds, stopping=stopping)
        with (
            reloading_on_hangup(run.presence.reload_requested),
            answering_commands(run),
            served(serve_settings, run, lambda: snapshot(run.wiring.afresh(), kinds.status)),
        ):
            try:
                run.start()
                if run.wait(goal) is ReachedState.WITHOUT:
                    raise missing(run, goal or {})
            except CalqueError as error:
                if not run.stop():
                    report_error(error)
                    leave(error.exit_code)
                raise
            except BaseException:
                run.stop()
                raise
            if not run.stop():
                leave(0)
    return 0


def watched(
    wiring: Wiring,
    targets: Sequence[str],
    held_roles: Roles,
    stopping: threading.Event,
    reread: ConfigurationReader | None,
    kinds: ProcessKinds,
) -> tuple[Wiring, Sequence[str]]:
    """Take the roles of the plugins' watches, and return the wiring and the targets of the configuration that the
    watches find. Called by the process that captures all sources.

    A watch that the configuration does not want is passed over. A source that does not answer while a watch is prepared
    is only logged: the watch finds it later, while the process runs. Raises `Unavailable` where another process has the
    roles.
    """
    for kind in kinds.watches:
        wanted = kind.roles(wiring.config)
        if not wanted or not held_roles.take(wanted, stopping):
            continue
        try:
            kind.prepare(wiring)
        except Unavailable as error:
            LOG.warning("%s: %s", kind.unprepared, error)
        config = kinds.amended(wiring.config)
        wiring = Wiring(config, wiring.runtime)
        targets = reread.targets(config) if reread is not None else tuple(config.targets)
    return wiring, targets


def require_known_ledgers(wiring: Wiring, targets: Sequence[str]) -> None:
    """Raise `Refused` where the ledger of a target has a format that this calque does not take over. A ledger that does
    not answer is waited for later, and a damaged one ends its target alone."""
    for name in targets:
        with suppress(Unavailable, StateUnusable):
            wiring.ledger(name).require_known_format()


def missing(run: ReplicatorProcess, goals: Mapping[str, EventId]) -> Unavailable:
    """Return the error that says why a target does not show the event that was waited for. Called once nothing more
    comes of itself. `goals` are the events by source."""
    for name in run.targets:
        ledger, goal = run.wiring.ledger(name), goals.get(run.wiring.config.source_of(name).name)
        if goal is None:
            continue
        epoch = ledger.last_epoch()
        reached = reached_state(epoch.event_id if epoch else None, ledger.tables().values(), goal)
        if reached.missing:
            tables = ", ".join(reached.missing)
            return Unavailable(f"{name} shows event {goal} without {tables}", "These tables are set aside", SEE)
        if is_paused(run.wiring.control, name):
            return Unavailable(f"{name} does not show event {goal}", *HELD_BACK)
    events = " and ".join(f"event {goal}" for goal in sorted(set(goals.values())))
    return Unavailable(f"Not every target shows {events} with all its tables", "Some were set aside", SEE)


@contextmanager
def answering_commands(run: ReplicatorProcess) -> Iterator[None]:
    """Answer questions of commands at a Unix socket while the context is entered."""
    answers = CommandSocket(run.wiring.state, run.kinds.questions, run.wiring_for_questions, lambda: run.digest)
    answers.begin()
    try:
        yield
    finally:
        answers.end()


@contextmanager
def served(
    serve_settings: Serve | None, run: ReplicatorProcess, status: Callable[[], Mapping[str, Any]]
) -> Iterator[None]:
    """Serve the page, health and metrics while the context is entered; none where `serve_settings` switches them off.
    Raises what `serve` raises."""
    if serve_settings is None or (serve_settings.address is None and not serve_settings.is_default()):
        yield
        return
    tokens = Tokens(serve_settings.token(), serve_settings.metrics_token(), serve_settings.reading == "open")
    access = Access(tokens, serve_settings.tls.tls())
    page = run.kinds.page(run, tokens.every is not None) if run.kinds.page is not None else None
    front = page.front() if page is not None else None
    pages = Pages(
        snapshot=run.snapshot,
        metrics=run.meters.text,
        status=status,
        wait=lambda target, event_id: EventWait(run.wiring_for_questions(), target, event_id),
        asked={path: partial(asked, run, ask) for path, ask in run.kinds.http_questions.items()},
        front=front,
    )
    serving = serve(serve_settings.address, pages, access)
    run.presence.serves = serving.address
    if page is not None:
        page.begin()
    try:
        yield
    finally:
        if page is not None:
            page.end()
        serving.end()


def asked(run: ReplicatorProcess, ask: HttpQuestion, given: Mapping[str, str]) -> tuple[int, Any]:
    return ask(run.wiring_for_questions(), given)


def leave(code: int) -> NoReturn:
    """End the process with `code` at once, though a thread hangs in a call: Python would wait for the thread."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_file(
    reader: ConfigurationReader,
    wire: Callable[[Config], Wiring],
    until: str | int | None,
    *,
    capture: bool,
    kinds: ProcessKinds,
    address: str = "",
) -> int:
    """Do `run_job` for the configuration that `reader` reads and `wire` makes live, until a signal ends it. `address`
    is where the process serves health and metrics, in place of the file's, because several processes may share one
    file.
    """
    with ended_by_signals() as stopping:
        config = reader.load()
        config.require_source()
        log_to_stderr(config.log.format, config.log.level)
        serve_settings = config.serve.at(endpoint(address)) if address else None
        targets = () if reader.named is None else config.select(reader.named)
        return run_job(
            wire(config),
            targets,
            until,
            stopping,
            capture=capture,
            reread=reader,
            serve_settings=serve_settings,
            kinds=kinds,
        )


def goals_of(wiring: Wiring, until: str | int | None) -> Mapping[str, EventId] | None:
    """Return the event to wait for, by source; None where `until` is None.

    For "head" it is each source's newest event now. A remote catalog that does not answer is left out with a warning.
    Raises `Refused` for an event id where there are several sources.
    """
    if until is None:
        return None
    if not isinstance(until, str):
        return {wiring.only_source().plug.name: until}
    goals = {}
    for name, source in wiring.sources.items():
        try:
            goals[name] = source.side().log.current()
        except (AccessRefused, Unavailable) as error:
            if not source.plug.is_linked:
                raise
            LOG.warning("%s is not waited for: %s", name, error)
    return goals


@contextmanager
def reloading_on_hangup(reload_requested: threading.Event) -> Iterator[None]:
    """Set `reload_requested` at each SIGHUP while the context is entered."""
    before = signal.signal(signal.SIGHUP, lambda _number, _frame: set_by_handler(reload_requested))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def require_known_failpoint() -> None:
    name = os.environ.get("CALQUE_FAILPOINT", "").partition("@")[0]
    if name and not is_known(name):
        raise Refused(f"There is no failpoint {name}", "CALQUE_FAILPOINT names it", f"Known: {', '.join(NAMES)}")
