"""The end of a demo: the folder that it works in, and signals that ask it to end."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from calque.errors import Refused

REMOVAL_SECONDS = 10.0


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed afterwards. The removal is tried for `REMOVAL_SECONDS`, because a service that is
    being killed may write a last file into the folder while it is removed."""
    folder = Path(tempfile.mkdtemp(prefix="calque-demo-")).resolve()
    try:
        yield folder
    finally:
        deadline = time.monotonic() + REMOVAL_SECONDS
        shutil.rmtree(folder, ignore_errors=True)
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_folder(keep: Path) -> Iterator[Path]:
    """Yield the folder `keep`, made where it is missing. Raises `Refused` where it is not an empty folder and can't be
    made one."""
    try:
        keep.mkdir(parents=True, exist_ok=True)
        empty = not any(keep.iterdir())
    except OSError as error:
        raise Refused(f"{keep} can't be used", str(error.strerror or error), "Name another folder") from None
    if not empty:
        raise Refused(f"{keep} is not empty", "The demo keeps its files there", "Name a new folder, or empty that one")
    yield keep.resolve()


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt within the block, as Ctrl-C does. This holds also for
    SIGINT where the process was started to ignore it."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
