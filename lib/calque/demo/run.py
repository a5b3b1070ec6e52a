"""The course of the demo: real metastores, a source that keeps changing, `calque run` as a child process, and a
verified end.

No process outlives this one, no matter how it ends: services and the child are kept (`processes.KeptProcess`), and an
interrupt stops them in order before the temporary folder goes.
"""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from calque.commands import verify, wait
from calque.commands.options import CommandSettings
from calque.config import Config
from calque.demo import configuration
from calque.demo.ending import kept_folder, signals_interrupt, temporary_folder
from calque.demo.outcome import Answer, Outcome, TargetOutcome
from calque.demo.progress import Progress, StateObserver, View
from calque.demo.source import Source
from calque.demo.warehouse import create_sample
from calque.demo.writer import Writer
from calque.errors import CalqueError, Unavailable
from calque.extension import App
from calque.sandbox import Broker, Metastore, MetastoreSettings
from calque.sandbox.processes import KeptProcess
from calque.sandbox.writer import HiveClient

START_SECONDS, DRAIN_SECONDS = 120.0, 60.0
STARTER = "starting"
BEGIN_SECONDS = 5.0
"""Seconds that a thread has to begin."""
PAUSE_SECONDS = 0.05
"""Seconds between two changes, because the demo shows how changes travel, not how many a laptop can make."""
SOURCE = "source"
SEE_LOG = "Run the demo with --keep DIR, and see run.log there"


def run_demo(keep: Path | None, targets: int, seconds: float, output: TextIO, journal: str, app: App) -> Outcome:
    """Run the whole demo and return its outcome; progress goes to `output`. The writer goes on for `seconds` after
    every target shows its first state. `journal` is the journal's format.

    Raises `Refused` when `keep` is not empty, `Unavailable` when a service or the replication does not start or ends by
    itself.
    """
    with ExitStack() as stack:
        stack.enter_context(signals_interrupt())
        directory = stack.enter_context(kept_folder(keep) if keep else temporary_folder())
        broker = " and a Kafka broker" if journal == "kafka" else ""
        output.write(f"Starting {targets + 1} metastores{broker} in {directory}\n")
        output.flush()
        names = configuration.names(targets)
        metastores = started([SOURCE, *names], directory / "metastores", stack)
        file = directory / "calque.toml"
        brokers = stack.enter_context(Broker.start(directory / "kafka")).address if journal == "kafka" else ""
        configuration.write(file, metastores[SOURCE].uri, {name: metastores[name].uri for name in names}, brokers)
        client = HiveClient(metastores[SOURCE].uri)
        stack.callback(client.close)
        source = Source(client, directory / "data")
        create_sample(source)
        writer = Writer(source)
        child = replication(file, directory)
        stack.callback(child.stop)
        settings = CommandSettings(str(file), json=True, app=app)
        config = settings.load()
        observer = StateObserver(app.wiring(config))
        with Progress(output, observer.look, writer.counts.total) as progress:
            seconds_written = _write(writer, child, progress, seconds)
            head = client.current()
            answers = _settled(settings, config, head, progress)
        view = observer.look()
        return Outcome(dict(writer.counts), seconds_written, head, _outcomes(view, answers), keep and directory)


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


def replication(file: Path, directory: Path) -> KeptProcess:
    """Start `calque run` as a child process, with its log in the demo's folder."""
    return KeptProcess([sys.executable, "-m", "calque.cli", "run", "-c", str(file)], directory / "run.log")


def _write(writer: Writer, child: KeptProcess, progress: Progress, seconds: float) -> float:
    """Change the source until every target shows its first state, and for `seconds` more. Return the seconds that it
    took in all. Raises `Unavailable` where a target shows nothing after `START_SECONDS`."""
    began = time.monotonic()
    progress.say("Starting the replication; the writer writes already")
    _write_until(writer, child, lambda: _all_shown(progress.view) or time.monotonic() > began + START_SECONDS)
    if not _all_shown(progress.view):
        raise _unfilled(progress.view)
    end = time.monotonic() + seconds
    progress.say(f"Writing for {seconds:.0f} s{_page(progress.view)}")
    _write_until(writer, child, lambda: time.monotonic() > end)
    return time.monotonic() - began


def _page(view: View) -> str:
    """Return the address of the process's page as a part of a line; empty where no process serves one."""
    addresses = [process["serves"] for process in view.status["processes"] if process["serves"]]
    return "".join(f"; the page is at {address}/" for address in addresses[:1])


def _write_until(writer: Writer, child: KeptProcess, is_done: Callable[[], bool]) -> None:
    while not is_done():
        if not child.running:
            last = child.output().strip().rpartition("\n")[2]
            raise Unavailable("`calque run` ended by itself", last.removeprefix("calque: "), SEE_LOG)
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
    return Unavailable(f"`calque run` did not fill every target within {START_SECONDS:.0f} s", why, SEE_LOG)


def _aside(target: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*target["quarantined"], *target["set_aside"]]


def _settled(
    settings: CommandSettings, config: Config, head: int, progress: Progress
) -> dict[str, tuple[Answer, Answer]]:
    """Wait until each target shows event `head` and verify it. Return the answers of `wait` and `verify` by target."""
    answers = {}
    for name in config.targets:
        progress.say(f"Waiting until {name} shows event {head}")
        wait_answer = answer(partial(wait.run, settings, config, name, head, DRAIN_SECONDS))
        progress.say(f"Verifying {name}, every byte")
        answers[name] = wait_answer, answer(partial(verify.run, settings, config, (name,), (), "checksum"))
    return answers


def answer(command: Callable[[], int]) -> Answer:
    """Run a command in this process and return what it answers on stdout. Its progress on stderr is dropped, because it
    would disturb the demo's own."""
    output = io.StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(io.StringIO()):
            code = command()
    except CalqueError as error:
        return Answer(error.exit_code, {}, str(error))
    return Answer(code, json.loads(output.getvalue() or "{}"))


def _outcomes(view: View, answers: Mapping[str, tuple[Answer, Answer]]) -> dict[str, TargetOutcome]:
    return {
        name: TargetOutcome(view.positions[name], view.work[name], wait_answer, verify_answer)
        for name, (wait_answer, verify_answer) in answers.items()
    }
