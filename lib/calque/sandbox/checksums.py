"""Writes `checksums.txt` anew, of what the repository sends today: `python -m calque.sandbox.checksums`."""

from pathlib import Path

from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import CHECKSUMS, Artifact, fetch, sha256


def all_artifacts() -> tuple[Artifact, ...]:
    return tuple(dict.fromkeys((*manifest.OF_THE_DEMO, *manifest.OF_TESTS, *manifest.OF_INTEROP)))


def write(cache: Path) -> None:
    artifacts = all_artifacts()
    fetch(artifacts, cache, print, lambda _artifact, _path: None)
    lines = (f"{sha256(one.path(cache))}  {one}\n" for one in sorted(artifacts, key=str))
    CHECKSUMS.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    write(cache_folder())
