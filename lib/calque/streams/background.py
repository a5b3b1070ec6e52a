"""What goes on beside capture: on a thread of its own, until it is to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from calque.errors import CalqueError, Unavailable
from calque.logs.fields import beside_windows

LOG = logging.getLogger(__name__)
STOP_SECONDS = 30.0


class BackgroundThread:
    """`work` is given the event that is set when it is to end; it may end before. `failed` is called with what it
    raises. A name is a thread's name."""

    def __init__(
        self, name: str, work: Callable[[threading.Event], None], on_failure: Callable[[BaseException], None]
    ) -> None:
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
        """Have it end, and wait for that a while."""
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join(timeout=STOP_SECONDS)


def again_and_again(
    look: Callable[[], object], what: str, seconds: float, share: int
) -> Callable[[threading.Event], None]:
    """Work that looks until it is to end: `seconds` lie between two looks at least, and they take at most one of
    `share` seconds. `what` says for people what waits where a look fails, once for each reason."""

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
