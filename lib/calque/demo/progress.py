"""The display of the demo while it runs: on a terminal a table that is drawn anew, elsewhere a line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table
from rich.text import Text

from calque.commands.output import counted
from calque.commands.status import reading
from calque.control.status import snapshot
from calque.errors import CalqueError
from calque.model.ledger import Epoch, count_bridges, count_parts, count_rereads
from calque.wiring.wiring import Wiring

LOOK_SECONDS, LINE_SECONDS = 1.0, 5.0
COLUMNS = ("target", "state", "position", "lag", "events", "hops", "events/hop", "calls", "files", "bytes", "aside")


@dataclass(frozen=True, slots=True)
class EpochTotals:
    """The sums over the epochs of one target."""

    epochs: int = 0
    events: int = 0
    hops: int = 0
    calls: int = 0
    files: int = 0
    bytes: int = 0
    bridges: int = 0
    parts: int = 0
    rereads: Mapping[str, int] = field(default_factory=dict)
    """The tables that were read again, counted by cause."""

    @classmethod
    def of(cls, epochs: Sequence[Epoch]) -> EpochTotals:
        return cls(
            epochs=len(epochs),
            events=sum(epoch.events for epoch in epochs),
            hops=sum(epoch.hops for epoch in epochs),
            calls=sum(epoch.calls for epoch in epochs),
            files=sum(epoch.files for epoch in epochs),
            bytes=sum(epoch.bytes for epoch in epochs),
            bridges=count_bridges(epochs),
            parts=count_parts(epochs),
            rereads=count_rereads(epochs),
        )

    @property
    def events_per_hop(self) -> str:
        """The number of events that one visible change stands for, as a text."""
        return f"{self.events / self.hops:.1f}" if self.hops else "-"


@dataclass(frozen=True, slots=True)
class View:
    """A look at the running replication: the document of `calque status --json`, and each target's work."""

    status: Mapping[str, Any] = field(default_factory=dict)
    work: Mapping[str, EpochTotals] = field(default_factory=dict)

    @property
    def head(self) -> int | None:
        head: int | None = self.status["source"]["head"] if self.status else None
        return head

    @property
    def positions(self) -> Mapping[str, int | None]:
        return {name: target["position"] for name, target in self.status.get("targets", {}).items()}


class StateObserver:
    """An observer of a running replication, through its state folder."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._ledgers = {name: wiring.ledger(name) for name in wiring.config.targets}

    def look(self) -> View:
        work = {name: EpochTotals.of(ledger.epochs()) for name, ledger in self._ledgers.items()}
        return View(snapshot(self._wiring), work)


class Progress:
    """The display of what is going on, until its context ends. `view` is the newest look.

    On a terminal it draws, elsewhere it prints lines. An exception of `look` is raised at the end of the context,
    unless another one is under way. A `CalqueError` (a service that starts, or is busy) leaves the last look in place.
    """

    def __init__(self, output: TextIO, look: Callable[[], View], changes: Callable[[], int]) -> None:
        self.view = View()
        self._look = look
        self._changes = changes
        self._console = Console(file=output, highlight=False, soft_wrap=not output.isatty())
        self._doing = ""
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="demo-progress", daemon=True)
        self._problem: Exception | None = None

    def say(self, activity: str) -> None:
        """Show `activity` as what is being done from now on."""
        self._doing = activity
        if not self._console.is_terminal:
            self._console.print(activity, markup=False)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._problem is not None and error is None:
            raise self._problem

    def _watch(self) -> None:
        try:
            if self._console.is_terminal:
                self._draw()
            else:
                self._print()
        except Exception as problem:  # noqa: BLE001 - a thread has no caller: `__exit__` raises it
            self._problem = problem

    def _draw(self) -> None:
        with Live(console=self._console, get_renderable=self._picture, redirect_stdout=False, redirect_stderr=False):
            while not self._ended.wait(LOOK_SECONDS):
                self._refresh()
            self._refresh()

    def _print(self) -> None:
        printed = 0.0
        while not self._ended.wait(LOOK_SECONDS):
            self._refresh()
            if self.view.status and time.monotonic() > printed + LINE_SECONDS:
                printed = time.monotonic()
                self._console.print(line(self.view, self._changes()), markup=False)

    def _refresh(self) -> None:
        with suppress(CalqueError):
            self.view = self._look()

    def _picture(self) -> RenderableType:
        heading = Text(f"{time.monotonic() - self._began:5.1f} s  {self._doing}", style="bold")
        if not self.view.status:
            return heading
        source = Text(f"Source at event {self.view.head}, {self._changes()} changes")
        return Group(heading, source, table(self.view), *map(Text, reads(self.view)))


def table(view: View) -> Table:
    """Return a table for the terminal, with one row for each target."""
    drawn_table = Table(*COLUMNS, box=None, header_style="bold")
    for column in drawn_table.columns[2:]:
        column.justify = "right"
    for name, target in view.status.get("targets", {}).items():
        work = view.work[name]
        lag = f"{target['lag_events'] or 0} / {target['lag_seconds'] or 0.0:.1f} s"
        cells = (name, target["state"], target["position"], lag, work.events, work.hops, work.events_per_hop)
        further_cells = (
            work.calls,
            work.files,
            decimal(work.bytes),
            len(target["set_aside"]) + len(target["quarantined"]),
        )
        drawn_table.add_row(*("-" if cell is None else str(cell) for cell in (*cells, *further_cells)))
    return drawn_table


def reads(view: View) -> list[str]:
    """Return a text for each target that is reading tables: how far it is."""
    targets = view.status.get("targets", {}).items()
    return [f"{name}: {reading(target['reading'])}" for name, target in targets if target["reading"] is not None]


def line(view: View, changes: int) -> str:
    """Return the state of the source and of all targets in one line."""
    targets = (
        f"{name} {target['state']} at {target['position'] or 0} ({work_of(view, name)}{tables(target)})"
        for name, target in view.status["targets"].items()
    )
    return f"  source at {view.head} after {changes} changes; " + "; ".join(targets)


def work_of(view: View, target: str) -> str:
    work = view.work[target]
    return f"{counted(work.events, 'event')} in {counted(work.hops, 'hop')}"


def tables(target: Mapping[str, Any]) -> str:
    """Return how many tables are read by now, as a part of a line; empty where the target does not read any."""
    reading = target["reading"]
    return f", {reading['tables_done']} of {reading['tables']} tables read" if reading is not None else ""
