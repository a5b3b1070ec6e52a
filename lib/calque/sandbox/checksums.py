"""A script that writes `checksums.txt` anew, from what the repository sends today: `python -m
calque.sandbox.checksums`."""

from collections.abc import Iterable
from pathlib import Path

from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import CHECKSUMS, Artifact, download, sha256


def write(file: Path, artifacts: Iterable[Artifact], cache: Path) -> None:
    """Write the file with the checksums of the artifacts. Artifacts that the cache lacks are downloaded and
    believed."""
    artifacts = sorted(set(artifacts), key=str)
    download(artifacts, cache, print, lambda _artifact, _path: None)
    lines = (f"{sha256(one.path(cache))}  {one}\n" for one in artifacts)
    file.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    write(CHECKSUMS, (*manifest.DELTA_JARS, *manifest.OF_THE_DEMO, *manifest.OF_TESTS), cache_folder())
