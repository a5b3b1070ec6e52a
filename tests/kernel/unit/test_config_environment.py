"""Keys of the configuration that the environment says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from calque.app import APP
from calque.cli import main
from calque.config import Config
from calque.errors import Refused
from calque.plugins.clusters.config.sections import require_clusters

FILE = """
[source]
name = "hq"
metastore = "thrift://hq:9083"

[targets.dr]
metastore = "thrift://dr:9083"
warehouse = "file:///data"
include = ["a.*"]
"""
NOBODY = ["wait", "--target", "none", "--event-id", "1"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "calque.toml"
    found.write_text(FILE)
    return found


def loaded(file: Path, **environment: str) -> Config:
    return APP.load(file, environment)


def test_a_variable_is_a_key_and_its_value_toml_or_text(file: Path) -> None:
    config = loaded(
        file,
        CALQUE__SOURCE__METASTORE="thrift://other:9083",
        CALQUE__WINDOW__MAX_EVENTS="77",
        CALQUE__WINDOW__MAX_DELAY="70ms",
        CALQUE__TARGETS__DR__INCLUDE='["b.*", "c.d"]',
        CALQUE__TARGETS__MORE__METASTORE='"thrift://more:9083"',
        CALQUE__TARGETS__MORE__WAREHOUSE="file:///more",
        CALQUE_CONFIG="elsewhere",
        CALQUE_SEED="1",
    )
    assert config.sources["hq"].keys.metastore == ("thrift://other:9083",)
    assert (config.window.max_events, config.window.max_delay) == (77, 0.07)
    assert config.target("dr").keys.include == ("b.*", "c.d")
    assert config.target("dr").keys.warehouse == "file:///data"
    assert config.target("more").keys.warehouse == "file:///more"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("CALQUE__SOURCE__METASTOR", "x", "source.metastor is no key (CALQUE__SOURCE__METASTOR says so)"),
        ("CALQUE__WINDOW__MAX_EVENTS", "many", "has the wrong type (CALQUE__WINDOW__MAX_EVENTS says so)"),
        ("CALQUE__TARGETS__DR__METASTORE", "thrift://hq:9083", "calque.toml"),
        ("CALQUE__SOURCE__NAME__X", "1", "CALQUE__SOURCE__NAME__X is no key: name is none that has others below it"),
        ("CALQUE__SOURCE____X", "1", "CALQUE__SOURCE____X is no key"),
        ("CALQUE__", "1", "CALQUE__ is no key"),
    ],
)
def test_what_is_wrong_names_the_variable(file: Path, variable: str, value: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        loaded(file, **{variable: value})
    assert said in str(refused.value)
    assert re.search(r"calque\.toml:\d", str(refused.value)) is None


def test_the_environment_names_the_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.toml"
    other.write_text("[nothing]")
    monkeypatch.setenv("CALQUE_CONFIG", str(other))
    assert main(["status"]) == 65
    assert "other.toml:1: nothing is no key" in capsys.readouterr().err
    assert main([*NOBODY, "-c", str(file)]) == 65
    assert "other.toml" not in capsys.readouterr().err
    monkeypatch.setenv("CALQUE_CONFIG", "")
    assert main(NOBODY) == 65
    assert 'There is no target "none". Known: dr' in capsys.readouterr().err


def test_deployments_of_clusters_are_read_without_them(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "clusters.toml"
    metastores = '[clusters.A]\nmetastore = "thrift://hq:9083"\n[clusters.B]\nmetastore = "thrift://dr:9083"\n'
    other.write_text(f'[clusters]\ndefault = "A"\ndeployments = ["{file.name}"]\n{metastores}')
    config = APP.load(other, {"CALQUE__CLUSTERS__DEFAULT": "B"})
    assert require_clusters(config).default == "B"
    [deployment] = config.others
    assert deployment.target("dr").keys.include == ("a.*",)
