"""The places of files that are no code of the package: written contracts, files to deploy, downloaded artifacts.

`python -m calque.resources jobs` prints the folder of the applications for spark-submit, and `deploy` in its place that
of the unit of systemd and of the manifests of Kubernetes.
"""

from __future__ import annotations

import os
import sys
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
    return _shipped("schemas")


def jobs_folder() -> Path:
    """Return the folder of the applications for spark-submit, likewise."""
    return _shipped("jobs")


def deploy_folder() -> Path:
    """Return the folder of the unit of systemd and of the manifests of Kubernetes, likewise."""
    return _shipped("deploy")


def _shipped(name: str) -> Path:
    package = Path(str(files("calque")))
    packaged = package / f"_{name}"
    return packaged if packaged.is_dir() else package.parents[1] / name


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


def main() -> None:
    """Print the folder that the command line names. Ends the process with 64 for any other word."""
    folders = {"jobs": jobs_folder, "deploy": deploy_folder}
    if len(sys.argv) != 2 or sys.argv[1] not in folders:
        print(f"Usage: python -m calque.resources {'|'.join(folders)}", file=sys.stderr)
        sys.exit(64)
    print(folders[sys.argv[1]]())


if __name__ == "__main__":
    main()
