"""The signals that ask a process to end. The module imports little, because a signal may come before any other module
is loaded."""

from __future__ import annotations

import _thread
import faulthandler
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set; restore the former handlers afterwards where no signal came.

    A second signal ends the process at once, also when it comes after this context. SIGUSR1 writes to standard error
    where each thread is.
    """
    stopping, is_asked = threading.Event(), False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked or stopping.is_set():
            os._exit(128 + number)
        is_asked = True
        set_by_handler(stopping)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    faulthandler.register(signal.SIGUSR1, file=2)
    try:
        yield stopping
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        if not is_asked:
            for number, handler in before.items():
                signal.signal(number, handler)


def set_by_handler(event: threading.Event) -> None:
    """Set `event` from a signal's handler.

    The handler runs in the midst of what the main thread does. That may be a wait for this very event, whose lock the
    main thread holds then, so another thread has to set the event. `_thread.start_new_thread` takes no lock, as
    `threading.Thread` would.
    """
    _thread.start_new_thread(event.set, ())
