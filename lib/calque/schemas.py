"""Where the written contracts lie: in the package, or in the checkout beside it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def folder() -> Path:
    """The folder `schemas` of the wheel, or of the checkout that an editable install points to."""
    package = Path(str(files("calque")))
    inside = package / "_schemas"
    return inside if inside.is_dir() else package.parents[1] / "schemas"


def versions(name: str) -> list[Path]:
    """All released versions of the Avro schema `name`, oldest first."""
    return sorted(folder().glob(f"{name}-*.avsc"), key=lambda path: int(path.stem.rpartition("-")[2]))
