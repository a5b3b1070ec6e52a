"""The sensor in the real Airflow, from the registry, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from support.places import ROOT

AIRFLOW = "apache-airflow==2.10.5"
"""It takes Python 3.11, and what else pip finds for it."""
LIBRARY = ROOT / "lib"
PROGRAM = """
import json
import sys

from calque.airflow import BaseSensorOperator, SetDoneSensor
from calque.errors import Refused

config, output = sys.argv[1:]
place = {"config": config, "table": "sales.orders", "target": "dr"}
sensor = SetDoneSensor(task_id="ready", partition={"ds": "{{ ds }}"}, **place)
assert isinstance(sensor, BaseSensorOperator)
sensor.render_template_fields({"ds": "2024-01-01"})
wrong = SetDoneSensor(task_id="wrong", partition={"ds": "x"}, **(place | {"target": "drr"}))
try:
    wrong.poke({})
except Refused as refused:
    told = str(refused)
with open(output, "w") as file:
    json.dump({"partition": sensor.partition, "poke": sensor.poke({}), "refused": told}, file)
"""
"""Nothing answers at these metastores; what a target shows is in its ledger."""
CONFIG = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "file:{root}/warehouse"
"""
MARK = """
import sys

from calque.app import APP
from calque.done.sets import DoneSets
from calque.model.marks import Mark
from calque.model.names import TableName

assert DoneSets(APP.wiring(APP.load(sys.argv[1]))).store.add(
    Mark(1, TableName("sales", "orders"), "r5", {"ds": "2024-01-01"}, 5, 1, 2**62)
)
"""


@pytest.mark.timeout(1800)
def test_the_sensor_looks_at_a_target_s_set_in_the_real_airflow(tmp_path: Path) -> None:
    config = tmp_path / "calque.toml"
    config.write_text(CONFIG.format(root=tmp_path))
    venv.create(tmp_path / "environment", with_pip=True)
    python = str(tmp_path / "environment" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", AIRFLOW], check=True, timeout=1500)
    # Behind Airflow's own, what calque needs.
    [packages] = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    (packages / "calque.pth").write_text(f"{LIBRARY}\n{sysconfig.get_path('purelib')}\n")
    subprocess.run([sys.executable, "-c", MARK, config], check=True, cwd=tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    output = tmp_path / "output"
    subprocess.run([python, "-c", PROGRAM, config, output], check=True, cwd=tmp_path, env=environment)
    said = json.loads(output.read_text())
    assert said["partition"] == {"ds": "2024-01-01"}
    assert said["poke"] is False
    assert 'no target "drr". The nearest is dr.' in said["refused"]
