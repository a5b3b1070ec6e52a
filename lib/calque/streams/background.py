"""Threads of a part that work beside its main thread until they are told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from calque.errors import CalqueError, Unavailable
from calque.logs.fields import beside_windows

LOG = logging.getLogger(__name__)
STOP_SECONDS = 30.0
"""Seconds for which `BackgroundThread.stop` waits at most until the work has ended."""
BackgroundWork = Callable[[threading.Event], None]
"""The body of a thread: it works until the event that it is given is set."""


class BackgroundThread:
    """A daemon thread called `name` that does one piece of work.

    `work` gets the event that is set when it is to end, and may end before. `on_failure` is called on the same thread
    with whichever exception ends `work`: a thread has no caller that could catch it.
    """

    def __init__(self, name: str, work: BackgroundWork, on_failure: Callable[[BaseException], None]) -> None:
        self.work, self.on_failure = work, on_failure
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=beside_windows(self.run), name=name, daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def run(self) -> None:
        try:
            self.work(self.stopping)
        except BaseException as error:  # noqa: BLE001 - a thread has no caller: whoever began it raises the error
            self.on_failure(error)

    def stop(self) -> None:
        """Ask the work to end, and wait for that at most `STOP_SECONDS`. Work that does not end by then is left
        running."""
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join(timeout=STOP_SECONDS)


def again_and_again(look: Callable[[], object], what: str, seconds: float, share: int) -> BackgroundWork:
    """Return work for a `BackgroundThread` that calls `look` until it is told to end.

    At least `seconds` lie between two looks, and looks take at most one of `share` seconds: after a look of 2 s with
    `share = 100` the next one begins 198 s later. A `CalqueError` of a look does not end the work. The log then says
    once for each reason that `what` (a plural noun for people) wait. Any other exception ends the work.
    """

    def work(stopping: threading.Event) -> None:
        pause, said = 0.0, ""
        while not stopping.wait(pause):
            began, reason, level = time.monotonic(), "", logging.WARNING
            try:
                look()
            except Unavailable as error:
                reason, level = str(error), logging.INFO
            except CalqueError as error:
                reason = str(error)
            if reason and reason != said:
                LOG.log(level, "%s wait: %s", what, reason)
            said = reason
            pause = max(seconds, (time.monotonic() - began) * (share - 1))

    return work
