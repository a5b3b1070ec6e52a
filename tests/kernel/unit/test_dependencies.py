"""What is imported is declared, what is declared is bounded, and each has a version that is installed everywhere."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from calque.app import APP
from support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
DECLARED = {
    "": PROJECT["project"]["dependencies"],
    **PROJECT["project"]["optional-dependencies"],
    "build": PROJECT["build-system"]["requires"],
}
"""Requirements by extra; those of an ordinary installation under an empty name."""
REQUIREMENTS = [
    Requirement(text) for extra, requirements in DECLARED.items() if extra != "all" for text in requirements
]
"""Without those of the extra that has all others."""
LIBRARY = ROOT / "lib" / "calque"
BESIDE = [path for folder in ("tests", "docs") for path in (ROOT / folder).iterdir()]
OURS = {"calque", "support", *(path.stem for path in BESIDE if path.suffix == ".py" or path.is_dir())}
DISTRIBUTIONS = packages_distributions()
BROUGHT_BY_AIRFLOW = {"airflow", "asgiref", "httpx"}
"""Packages that Airflow itself depends on, in 2.10 as in 3."""


def names_of(extras: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for extra in extras for text in DECLARED[extra]}


def packages(file: Path) -> Iterator[str]:
    """The top-level packages that a module imports anywhere in it, but for Python's own and ours."""
    beside = {sibling.stem for sibling in file.parent.glob("*.py")}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        for module in modules:
            name = module.partition(".")[0]
            if name not in sys.stdlib_module_names | OURS | beside:
                yield name


def undeclared(files: Iterable[Path], extras: Iterable[str]) -> set[tuple[str, str]]:
    """Files and the packages that they import although no distribution that has them is declared."""
    declared = names_of(extras)
    return {
        (str(file.relative_to(ROOT)), package)
        for file in files
        for package in packages(file)
        if declared.isdisjoint(map(canonicalize_name, DISTRIBUTIONS.get(package, [package])))
    }


def is_bounded(requirement: Requirement) -> bool:
    return any(specifier.operator in {"<", "<=", "=="} for specifier in requirement.specifier)


def pins() -> dict[str, Version]:
    lines = [line for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")]
    pairs = [re.fullmatch(r"([\w.-]+)==([\w.+!-]+)", line) for line in lines]
    assert [line for line, pair in zip(lines, pairs, strict=True) if pair is None] == []
    return {canonicalize_name(pair[1]): Version(pair[2]) for pair in pairs if pair}


def test_the_kernel_imports_only_what_an_installation_without_plugins_has() -> None:
    others = (LIBRARY / "sandbox", LIBRARY / "plugins", LIBRARY / "airflow")
    files = [file for file in LIBRARY.rglob("*.py") if not any(map(file.is_relative_to, others))]
    assert undeclared([*files, *(ROOT / "jobs").glob("*.py")], ["", "kerberos", "shell"]) == set()


@pytest.mark.parametrize("folder", sorted((LIBRARY / "plugins").glob("*/")), ids=lambda folder: folder.name)
def test_a_plugin_imports_only_what_its_extras_declare(folder: Path) -> None:
    extras = [extra.name for plugin in APP.plugins if plugin.name == folder.name for extra in plugin.extras()]
    assert undeclared(folder.rglob("*.py"), ["", *extras]) == set()


def test_the_provider_of_airflow_imports_besides_only_what_airflow_brings() -> None:
    found = {package for _, package in undeclared((LIBRARY / "airflow").glob("*.py"), [""])}
    assert found == BROUGHT_BY_AIRFLOW


def test_the_sandbox_imports_only_what_its_extra_declares() -> None:
    assert undeclared((LIBRARY / "sandbox").rglob("*.py"), ["", "sandbox"]) == set()


def test_tests_and_pages_import_only_what_some_extra_declares() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").glob("*.py")]
    assert undeclared(files, DECLARED.keys() - {"all"}) == set()


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_a_dependency_has_an_upper_bound(requirement: Requirement) -> None:
    assert is_bounded(requirement)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_make_install_takes_a_version_that_the_declaration_permits(requirement: Requirement) -> None:
    pinned = pins()[canonicalize_name(requirement.name)]
    assert pinned in requirement.specifier


def test_every_extra_is_installed_with_the_pinned_versions() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in makefile.splitlines() if "$(BIN)/python -m pip install" in line]
    assert installs
    assert [line for line in installs if "--constraint constraints.txt" not in line] == []
