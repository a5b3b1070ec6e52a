"""The course of the demo: real metastores, a source that keeps changing, `calque run` as a child process, and a
verified end.

No process outlives this one, no matter how it ends: services and the child are kept (`processes.KeptProcess`), and an
interrupt stops them in order before the temporary folder goes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from calque.commands.options import CommandSettings
from calque.demo import configuration
from calque.demo.child import SEE_LOG, replication, require_running
from calque.demo.ending import signals_interrupt, work_folder
from calque.demo.headway import STILL_SECONDS, Headway
from calque.demo.invitation import Invitation, suggestions
from calque.demo.outcome import Outcome
from calque.demo.preparation import fetch_servers, require_host
from calque.demo.progress import Progress, StateObserver, View
from calque.demo.settling import outcomes_of, settled
from calque.demo.shop import create_shop
from calque.demo.source import Source
from calque.demo.stay import prepare_stay, stay
from calque.demo.warehouse import create_sample
from calque.demo.writer import Writer
from calque.errors import Unavailable
from calque.extension import App
from calque.sandbox import Broker, Metastore, MetastoreSettings
from calque.sandbox.processes import KeptProcess
from calque.sandbox.writer import HiveClient

STARTER = "starting"
BEGIN_SECONDS = 5.0
"""Seconds that a thread has to begin."""
PAUSE_SECONDS = 0.05
"""Seconds between two changes, because the demo shows how changes travel, not how many a laptop can make."""
SOURCE = "source"


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoOptions:
    """The options of a demo. The writer goes on for `seconds` after every target shows its first state. `journal` is
    the journal's format. A demo with `stays` goes on after its end until it is interrupted."""

    keep: Path | None
    targets: int
    seconds: float
    journal: str
    stays: bool

    @property
    def has_broker(self) -> bool:
        return self.stays or self.journal == "kafka"


@dataclass(frozen=True, kw_only=True, slots=True)
class Addresses:
    """The addresses of a demo's services: the metastores of the source and of each target, and the broker, empty where
    there is none."""

    source: str
    targets: Mapping[str, str]
    broker: str


def run_demo(options: DemoOptions, output: TextIO, app: App, show: Callable[[Outcome], None]) -> None:
    """Run the whole demo; progress goes to `output`, and `show` gets the outcome before the services stop. A demo that
    is to stay, and whose targets are equal, goes on then until an interrupt, which ends it.

    Raises `Refused` when the extra `sandbox` is missing or the folder to keep is not empty, `Unavailable` when files
    can't be fetched, or a service or the replication does not start, makes no headway or ends by itself.
    """
    require_host(with_kafka=options.has_broker)
    with ExitStack() as stack:
        stack.enter_context(signals_interrupt())
        folder = stack.enter_context(work_folder(options.keep))
        directory = folder.path
        fetch_servers(Console(file=output, highlight=False, soft_wrap=not output.isatty()))
        broker = " and a Kafka broker" if options.has_broker else ""
        output.write(f"Starting {options.targets + 1} metastores{broker} in {directory}\n")
        output.flush()
        addresses = _services(options, directory, stack)
        file = _configured(options, addresses, directory)
        client = HiveClient(addresses.source)
        stack.callback(client.close)
        source = Source(client, directory / "data")
        create_sample(source)
        writer = Writer(source)
        further = [create_shop(Source(client, directory / "shop"))] if options.stays else []
        child = replication(file, directory)
        stack.callback(child.stop)
        settings = CommandSettings(str(file), json=True, app=app)
        config = settings.load()
        wiring = app.wiring(config)
        observer = StateObserver(wiring)
        with Progress(output, observer.look, writer.counts.total) as progress:
            headway = Headway(time.monotonic())
            seconds = _write(writer, child, progress, headway, options.seconds)
            head = client.current()
            answers = settled(settings, config, wiring, head, child, progress, headway)
        view = observer.look()
        outcome = Outcome(dict(writer.counts), seconds, head, outcomes_of(view, answers))
        folder.is_kept |= outcome.code != 0
        kept = directory if folder.is_kept else None
        if outcome.code or not options.stays:
            show(outcome.with_rest(kept))
            return
        lines = suggestions(file, addresses.source, list(addresses.targets))
        token = (directory / configuration.TOKEN_FILE).read_text(encoding="utf-8")
        show(outcome.with_rest(kept, Invitation(_page(view), token, file, lines)))
        stay([writer, *further], child)
        output.write("Stopping\n")


def _services(options: DemoOptions, directory: Path, stack: ExitStack) -> Addresses:
    """Start the services, and return their addresses. They are stopped with `stack`."""
    names = configuration.names(options.targets)
    metastores = started([SOURCE, *names], directory / "metastores", stack)
    broker = stack.enter_context(Broker.start(directory / "kafka")).address if options.has_broker else ""
    targets = {name: metastores[name].uri for name in names}
    return Addresses(source=metastores[SOURCE].uri, targets=targets, broker=broker)


def _configured(options: DemoOptions, addresses: Addresses, directory: Path) -> Path:
    """Write the configuration, and return its path."""
    file = directory / "calque.toml"
    more = prepare_stay(directory, addresses.source, addresses.targets, addresses.broker) if options.stays else ""
    brokers = addresses.broker if options.journal == "kafka" else ""
    configuration.write(file, addresses.source, addresses.targets, brokers, more)
    return file


def started(names: Sequence[str], directory: Path, stack: ExitStack) -> dict[str, Metastore]:
    """Start the metastores side by side and return them by name. They are stopped with `stack`, also those that were
    ready when another one failed."""

    def start(name: str) -> Metastore:
        metastore = Metastore.start(MetastoreSettings(version="3.1.3"), directory / name)
        stack.callback(metastore.stop)
        return metastore

    try:
        with ThreadPoolExecutor(len(names), thread_name_prefix=STARTER) as pool:
            return dict(zip(names, pool.map(start, names), strict=True))
    finally:
        # A signal that comes while the pool makes a thread leaves one that the pool does not know, and that may stay
        # listed although it never begins.
        deadline = time.monotonic() + BEGIN_SECONDS
        while any(thread.is_alive() or time.monotonic() < deadline for thread in starters()):
            time.sleep(0.02)


def starters() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(STARTER)]


def _write(writer: Writer, child: KeptProcess, progress: Progress, headway: Headway, seconds: float) -> float:
    """Change the source until every target shows its first state, and for `seconds` more. Return the seconds that it
    took in all. Raises `Unavailable` where a target shows nothing and there is no more headway."""
    began = time.monotonic()
    progress.say("Starting the replication; the writer writes already")
    for _ in _written(writer, child):
        if _all_shown(progress.view):
            break
        if headway.still_seconds(progress.view, time.monotonic()) > STILL_SECONDS:
            raise _unfilled(progress.view)
    end = time.monotonic() + seconds
    page = _page(progress.view)
    progress.say(f"Writing for {seconds:.0f} s{f'; the page is at {page}' if page else ''}")
    for _ in _written(writer, child):
        if time.monotonic() > end:
            break
    return time.monotonic() - began


def _page(view: View) -> str:
    """Return the address of the process's page; empty where no process serves one."""
    addresses = [process["serves"] for process in view.status["processes"] if process["serves"]]
    return f"{addresses[0]}/" if addresses else ""


def _written(writer: Writer, child: KeptProcess) -> Iterator[None]:
    """Change the source again and again, and yield before each change. Raises `Unavailable` when the replication ends
    by itself."""
    while True:
        yield
        require_running(child)
        writer.step()
        time.sleep(PAUSE_SECONDS)


def _all_shown(view: View) -> bool:
    positions = view.positions.values()
    return bool(positions) and None not in positions


def _unfilled(view: View) -> Unavailable:
    """Return the error for targets that show nothing yet, with the reasons."""
    reasons = [
        "; ".join([f"{name} is {target['state']}", *(f"{one['table']}: {one['reason']}" for one in _aside(target)[:3])])
        for name, target in view.status.get("targets", {}).items()
        if target["position"] is None
    ]
    why = ". ".join(reasons) or "It says nothing"
    what = f"`calque run` has not filled every target, and made no headway for {STILL_SECONDS:.0f} s"
    return Unavailable(what, why, SEE_LOG)


def _aside(target: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*target["quarantined"], *target["set_aside"]]
