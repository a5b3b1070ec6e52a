"""The end of a demo: the folder that it works in, and signals that ask it to end."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from calque.errors import CalqueError, Refused

REMOVAL_SECONDS = 10.0


@dataclass(slots=True)
class WorkFolder:
    """The folder that a demo works in. `is_kept` says whether it stays there after the demo."""

    path: Path
    is_kept: bool


@contextmanager
def work_folder(keep: Path | None) -> Iterator[WorkFolder]:
    """Yield the folder `keep`, or a temporary one where that is None, which is removed afterwards unless it is to be
    kept. Where an error ends the block, a folder that holds anything is kept, and the error names it; an interrupt is
    no error.

    Raises `Refused` where `keep` is not an empty folder and can't be made one.
    """
    folder = _temporary() if keep is None else WorkFolder(_empty(keep), is_kept=True)
    try:
        yield folder
    except CalqueError as error:
        if not any(folder.path.iterdir()):
            raise
        folder.is_kept = True
        raise naming(error, folder.path) from error
    except Exception as error:
        folder.is_kept = True
        error.add_note(f"The demo's files and logs are kept in {folder.path}.")
        raise
    finally:
        if not folder.is_kept:
            _remove(folder.path)


def naming(error: CalqueError, folder: Path) -> CalqueError:
    """Return an error of the same kind that also says where the demo's files are."""
    todo = f"{error.todo.rstrip('.')}. " if error.todo else ""
    return type(error)(error.what, error.why, f"{todo}The demo's files and logs are kept in {folder}", error.where)


def _temporary() -> WorkFolder:
    return WorkFolder(Path(tempfile.mkdtemp(prefix="calque-demo-")).resolve(), is_kept=False)


def _empty(keep: Path) -> Path:
    try:
        keep.mkdir(parents=True, exist_ok=True)
        empty = not any(keep.iterdir())
    except OSError as error:
        raise Refused(f"{keep} can't be used", str(error.strerror or error), "Name another folder") from None
    if not empty:
        raise Refused(f"{keep} is not empty", "The demo keeps its files there", "Name a new folder, or empty that one")
    return keep.resolve()


def _remove(folder: Path) -> None:
    """Remove the folder. The removal is tried for `REMOVAL_SECONDS`, because a service that is being killed may write a
    last file into the folder while it is removed."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)


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
