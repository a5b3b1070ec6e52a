"""What is not installed: calque works without its extras, and says which one a configuration needs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from calque.app import APP
from calque.cli import main
from calque.config import extras
from calque.config.extras import KERBEROS
from support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ALL = (KERBEROS, *APP.each(lambda plugin: plugin.extras()))
WITHOUT = """
import pkgutil
import sys
from importlib import import_module

LACKING = set(sys.argv[2:])


class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LACKING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Nowhere())
import calque
from calque.app import APP
from calque.cli import main

assert (main(["--help"]), main(["init", sys.argv[1]])) == (0, 0)
APP.wiring(APP.load(sys.argv[1]))
APP.process()
APP.checks()
APP.language()
for module in pkgutil.walk_packages(calque.__path__, "calque."):
    if module.name == "calque.commands.sql_shell" or module.name.endswith("__main__"):
        continue
    try:
        import_module(module.name)
    except ModuleNotFoundError as error:
        if module.name.startswith("calque.airflow.") and error.name.partition(".")[0] in ("airflow", "httpx"):
            continue
        assert error.name.partition(".")[0] in LACKING, (module.name, error)
        assert ".adapters." in module.name, module.name
"""
BASE = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "file:///data/dr"
"""
S3 = BASE.replace("file:///data/dr", "s3://bucket/dr")
KAFKA = BASE + '[journal]\nformat = "kafka"\nbrokers = "127.0.0.1:3"\n'
NEEDING = [
    (KAFKA, ["confluent_kafka"], "[journal] needs the extra kafka. The module confluent_kafka is not installed."),
    (BASE + '[notices.bus]\nurl = "kafka://127.0.0.1"\n', ["httpx2"], "[notices.bus] needs the extra kafka."),
    (BASE + '[notices.bus]\nurl = "stomp://127.0.0.1"\n', ["stomp"], "[notices.bus] needs the extra activemq."),
    (S3, ["s3fs"], "[targets.dr] needs the extra s3."),
    (BASE.replace("file:", "hdfs:"), ["hdfs_native"], "[targets.dr] needs the extra hdfs."),
    (BASE + '[state]\nhistory = "7d"\n', ["duckdb"], "[state] history needs the extra audit."),
    (
        BASE.replace("[targets.dr]\n", '[targets.dr]\nauth = "kerberos"\n'),
        ["gssapi"],
        "[targets.dr] needs the extra ker",
    ),
    (
        BASE
        + '[clusters]\ndefault = "C"\n[clusters.C]\nmetastore = "thrift://127.0.0.1:4"\nengine = "sc://127.0.0.1"\n',
        ["grpc"],
        "[clusters.C] needs the extra clusters.",
    ),
]


def lacking(monkeypatch: pytest.MonkeyPatch, modules: Sequence[str]) -> None:
    """As on a host where exactly these are not installed."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in modules else object())


def test_everything_but_adapters_works_without_the_packages_of_extras(tmp_path: Path) -> None:
    modules = sorted({module for extra in ALL for module in extra.modules} | {"prompt_toolkit", "delta", "psycopg"})
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path / "calque.toml"), *modules],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("text", "modules", "said"), NEEDING)
def test_what_a_configuration_needs_and_this_host_lacks_is_one_line_of_check_and_of_run(
    text: str,
    modules: Sequence[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "calque.toml"
    file.write_text(text)
    lacking(monkeypatch, modules)
    assert main(["run", "-c", str(file)]) == 65
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert said in line
    assert "pip install 'calque-replicator[" in line
    assert not (tmp_path / "state").exists()
    assert main(["check", "-c", str(file)]) == 65
    assert f"error: {said[:-1]}" in capsys.readouterr().out


def test_nothing_is_said_of_what_nobody_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "calque.toml").write_text(BASE)
    lacking(monkeypatch, [module for extra in ALL for module in extra.modules])
    assert APP.missing_extras(APP.load(tmp_path / "calque.toml")) == ()


def test_the_distribution_has_each_extra() -> None:
    declared = PROJECT["optional-dependencies"]
    assert {extra.name for extra in ALL} <= declared.keys()
    [whole] = declared["all"]
    named = whole.partition("[")[2].rstrip("]").split(",")
    assert sorted(named) == sorted(declared.keys() - {"all", "kerberos", "sandbox", "dev", "docs"})
    assert PROJECT["name"] == extras.DISTRIBUTION
