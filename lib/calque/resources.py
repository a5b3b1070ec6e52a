"""The places of files that are no code: the written contracts, and downloaded artifacts."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

TO_INSTALL = "Run `make install`, or `python -m calque.sandbox.install`; for tests `make install-tests`"
"""The remedy where the cache lacks a file."""


def cache_folder() -> Path:
    """Return the folder that `python -m calque.sandbox.install` fills.

    That is `CALQUE_CACHE` when it is set; `.cache` of the checkout when the package runs from one; else `calque` in the
    user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`).
    """
    configured = os.environ.get("CALQUE_CACHE")
    if configured:
        return Path(configured).expanduser().resolve()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "lib" / "calque").is_dir():
        return checkout / ".cache"
    user_caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_caches) / "calque"


def schemas_folder() -> Path:
    """Return the folder `schemas` of the wheel, or of the checkout that an editable install points to."""
    package = Path(str(files("calque")))
    packaged = package / "_schemas"
    return packaged if packaged.is_dir() else package.parents[1] / "schemas"


def schema_versions(name: str) -> list[Path]:
    """Return the files of all released versions of the Avro schema `name`, oldest first."""
    return sorted(schemas_folder().glob(f"{name}-*.avsc"), key=lambda path: int(path.stem.rpartition("-")[2]))


def package_versions() -> dict[str, str]:
    """Return the versions of calque, of Python, and of the packages that do the work; empty for one that is not
    installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    packages = {"pyspark": "pyspark", "deltalake": "deltalake"}
    return {
        "version": installed("calque-replicator"),
        "python": platform.python_version(),
        **{label: installed(name) for label, name in packages.items()},
    }
