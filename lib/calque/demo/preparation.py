"""The preparation of this host for a demo: missing packages are named before anything starts, and servers fetched."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from calque.commands.output import counted
from calque.resources import cache_folder
from calque.sandbox.install import DEMO, FOR_KAFKA, MODULES, install, is_complete, require_extra
from calque.sandbox.java import java_17

PART = "`calque demo`"


def require_host(*, with_kafka: bool) -> None:
    """Raise `Refused` where the extra `sandbox` is missing, and `Unavailable` where Java is missing or too old. With
    `with_kafka` a broker is part of the demo."""
    require_extra(PART, (*MODULES, *(FOR_KAFKA if with_kafka else ())))
    java_17()


def fetch_servers(console: Console) -> None:
    """Put into the cache what the demo's servers need and the cache lacks, and tell it on `console`. Raises
    `Unavailable` and `Refused` as `install` does."""
    cache = cache_folder()
    if is_complete(DEMO, cache):
        return
    lacking = sum(not artifact.path(cache).exists() for artifact in dict.fromkeys(DEMO.artifacts))
    what = counted(lacking, "file") if lacking else "the metastore's database"
    console.print(f"Putting what the servers need into {cache}, once: {what}", markup=False)
    with console.status("") as status:
        install(DEMO, cache, _told(console, lacking, status.update))


def _told(console: Console, lacking: int, show: Callable[[str], None]) -> Callable[[str], None]:
    """Return the function that is told of each file, and of the end. `show` changes the line on a terminal."""
    files = 0

    def tell(text: str) -> None:
        nonlocal files
        files += 1
        if files > lacking:
            console.print(text, markup=False)
        else:
            then = "" if files < lacking else "; making the metastore's database"
            show(f"{files} of {lacking}: {text}{then}")

    return tell
