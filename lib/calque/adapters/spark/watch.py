"""Which offset comes next: the event id, and a counter that wakes a query without any event.

An offset is `{"event_id": N, "wake": W}`. Spark compares offsets as JSON text, so `offset` is the only place that makes
one. A watch lives in the source process of one query and waits there for news (measured: a long poll costs an idle
query 3 % of a core where a polling trigger costs 10 %).
"""

from __future__ import annotations

import faulthandler
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from calque.errors import Unavailable
from calque.model.names import EventId
from calque.state_files import draft_of, make_folder, open_private

logger = logging.getLogger(__name__)

Offset = dict[str, int]
Stamp = tuple[int | None, ...]
BRISK, BRISK_SECONDS, LEAST_PAUSE = 10, 10.0, 0.004
"""How much oftener is looked, for how long after the last news, and how often at most."""
UNTOLD = 1.0
"""Seconds between two looks without a word that there is news."""
LONGEST_PAUSE = 5.0
"""Seconds between two attempts to reach a log that does not answer."""
STUCK_SECONDS = 120.0
"""What is asked gives up long before that, or hangs for ever."""


def offset(event_id: EventId, wake: int) -> Offset:
    return {"event_id": event_id, "wake": wake}


def bump(counter: Path) -> None:
    """Count the file up by one: whoever watches it runs a batch, an empty one if there are no events.

    The count is the file's length, so that one appended byte counts whatever others append at the same time.
    """
    with os.fdopen(open_private(counter, os.O_WRONLY | os.O_APPEND), "ab", buffering=0) as file:
        file.write(b".")
    stamp_now(counter.parent)


def count(counter: Path) -> int:
    """How often the file was bumped; 0 when it is missing."""
    try:
        return counter.stat().st_size
    except FileNotFoundError:
        return 0


def touch(news: Path) -> None:
    """Tell whoever watches the file that there is news."""
    os.close(open_private(news, os.O_WRONLY))
    stamp_now(news)
    stamp_now(news.parent)


def stamp_now(path: Path) -> None:
    """Give the file or folder the time of now, to the nanosecond: two words must not have one time. Of what is another
    user's only the system's own clock can be set, which stands still for some milliseconds."""
    now = time.time_ns()
    try:
        os.utime(path, ns=(now, now))
    except PermissionError:
        os.utime(path)


def touched(news: Path) -> int | None:
    """What changes with each `touch`; None before the first. That of their folder changes with each `touch`, `bump` and
    `announce` in it."""
    try:
        return news.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def brisk(poll: float) -> float:
    """Seconds between looks after some news, which seldom comes alone, in place of `poll`."""
    return max(poll / BRISK, LEAST_PAUSE)


def announce(coming: Path, event_id: EventId) -> None:
    """Say that events up to that one will be in the journal in a moment. Where it can't be written, as on a full disk,
    nobody waits for them."""
    with suppress(OSError):
        make_folder(coming.parent)
        with draft_of(coming, str(event_id).encode(), is_synced=False) as draft:
            draft.replace(coming)
        stamp_now(coming.parent)


def announced(coming: Path) -> EventId:
    """The newest event that was announced; 0 for none, and where the file can't be read."""
    try:
        text = coming.read_text(errors="replace")
    except FileNotFoundError:
        return 0
    return int(text) if text.isascii() and text.isdigit() else 0


class Watch:
    """The offsets of one query's source.

    `newest` is the newest event id; `compare(start, newest)` raises when `newest` can't continue `start`; `wakes` is
    the count. As long as `stamp` is the same, both are asked seldom; where it is None, at each look. `poll` seconds is
    the longest pause between two looks, `soon` the one after news. While `newest` or `wakes` raises `Unavailable`
    there is no news, and they are asked less and less often. The process ends, and says where its threads were, when
    they take `stuck` seconds longer than the `wait` of a call: its query begins anew with another one.
    """

    def __init__(
        self,
        newest: Callable[[], EventId],
        compare: Callable[[EventId, EventId], None],
        wakes: Callable[[], int],
        poll: float,
        soon: float,
        wait: float,
        stuck: float,
        stamp: Callable[[], Stamp | None] = lambda: None,
    ) -> None:
        self._newest, self._compare, self._wakes = newest, compare, wakes
        self._poll, self._soon, self._wait, self._stuck = poll, soon, wait, stuck
        self._stamp, self._due = stamp, 0.0
        self._stamp_seen: Stamp | None = None
        self._answered = False
        self._news = float("-inf")
        self._silent = False
        self._frozen: Offset | None = None
        self._last_offset: Offset | None = None

    def latest(self, start: Mapping[str, int], at_most: int | None) -> Offset:
        """The offset after `start`, at most `at_most` events later; `start` itself when nothing comes in `wait`
        seconds. The first call answers at once (measured: else the first batch waits out the poll)."""
        faulthandler.dump_traceback_later(self._wait + self._stuck, exit=True, file=2)
        try:
            return self._latest(start, at_most)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _latest(self, start: Mapping[str, int], at_most: int | None) -> Offset:
        begin = offset(start["event_id"], start["wake"])
        until = time.monotonic() + (self._wait if self._answered and self._frozen is None else 0.0)
        self._answered = True
        pause = self._pause()
        while True:
            newest = self._frozen or self._look(begin)
            self._compare(begin["event_id"], newest["event_id"])
            reached = within(begin, newest, at_most)
            if reached != begin:
                self._news = time.monotonic()
            remaining = until - time.monotonic()
            if reached != begin or remaining <= 0:
                return reached
            time.sleep(min(pause, remaining))
            pause = min(pause * 2, LONGEST_PAUSE) if self._silent else self._pause()

    def _pause(self) -> float:
        return self._soon if time.monotonic() - self._news < BRISK_SECONDS else self._poll

    def freeze(self) -> None:
        """From now on nothing newer than what is there now. Raises `Unavailable`."""
        self._frozen = self._last_offset = offset(self._newest(), self._wakes())

    def newest_seen(self) -> Offset | None:
        """The newest offset met so far; asks nobody."""
        return self._last_offset

    def _look(self, begin: Offset) -> Offset:
        stamp, now = self._stamp(), time.monotonic()
        if stamp is not None and stamp == self._stamp_seen and now < self._due and self._last_offset is not None:
            return self._last_offset
        try:
            newest, wake = self._newest(), self._wakes()
        except Unavailable as problem:
            if not self._silent:
                logger.warning("no news of events: %s", problem)
            self._silent = True
            return begin
        if self._silent:
            logger.warning("news of events again")
        self._silent = False
        self._stamp_seen, self._due = stamp, now + UNTOLD
        self._last_offset = offset(newest, wake)
        return self._last_offset


def within(begin: Offset, newest: Offset, at_most: int | None) -> Offset:
    """`newest`, or as far as `at_most` events after `begin`; never before `begin`."""
    upto = max(begin["event_id"], newest["event_id"])
    if at_most is not None:
        upto = min(upto, begin["event_id"] + at_most)
    return offset(upto, newest["wake"])
