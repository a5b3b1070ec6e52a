"""What Spark's executors need of Python, as an archive that `spark-submit --archives` takes to them: calque as it is in
this checkout, and the installed packages that it needs. Spark brings its own Python sources."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from calque.config.extras import DISTRIBUTION
from calque.resources import schemas_folder
from support.places import ROOT

NOT_NEEDED = ("pyspark", "py4j")
SKIPPED = {"..", "tests", "include"}
"""Folders of packages that nobody needs who runs them."""
EXTRAS = ("", "kafka", "s3")
"""What executors may have to open."""
NAME = "environment"
"""Of the folder that executors find in their working directory, and the driver in its own."""


def make_environment(folder: Path) -> Path:
    """Makes the folder `environment` below `folder`, for the driver; returns the archive of it beside it."""
    environment = folder / NAME
    packages = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    packages.mkdir(parents=True)
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    files = {file: file.locate() for each in needed(DISTRIBUTION, {}).values() for file in each.files or ()}
    for file, installed in files.items():
        if not SKIPPED.intersection(file.parts) and "__editable__" not in file.name and installed.is_file():
            take(Path(str(installed)), packages / file)
    shutil.copytree(ROOT / "lib" / "calque", packages / "calque", dirs_exist_ok=True)
    shutil.copytree(schemas_folder(), packages / "calque" / "_schemas", dirs_exist_ok=True)
    archive = folder / f"{NAME}.tar.gz"
    # Of the forms that Spark unpacks this one alone keeps links and permissions.
    with tarfile.open(archive, "w:gz", compresslevel=0) as file:
        file.add(environment, arcname=".")
    return archive


def needed(name: str, known: dict[str, Distribution]) -> dict[str, Distribution]:
    """The distributions that one requires, and those that these require, by name."""
    for requirement in requirements(name):
        if requirement.name not in (*known, *NOT_NEEDED):
            try:
                known[requirement.name] = distribution(requirement.name)
            except PackageNotFoundError:
                continue
            needed(requirement.name, known)
    known.setdefault(name, distribution(name))
    return known


def requirements(name: str) -> Iterator[Requirement]:
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in EXTRAS):
            yield requirement


def take(source: Path, target: Path) -> None:
    """The file by another name, of the same content; several packages may have one in common."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
