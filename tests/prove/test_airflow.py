"""The provider in the real Airflow, from the registry, in environments of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from calque.config.checks import Endpoint
from calque.control.waiting import Waited
from calque.errors import Unavailable
from calque.model.secrets import FileSecret
from calque.serve.guard import Tokens
from calque.serve.http import Access, serve
from calque.serve.pages import EventWait, Pages
from calque.serve.samples import ProcessSample
from support.places import ROOT

AIRFLOWS = ("apache-airflow==2.10.5", "apache-airflow==3.3.2")
"""They take Python 3.11, and what else pip finds for them."""
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
TOKEN = "of-all-pages"
PROGRAM = """
import asyncio
import json
import sys

from airflow.providers_manager import ProvidersManager

from calque.airflow import (
    BaseSensorOperator,
    CalqueDoneSensor,
    CalqueHook,
    CalquePauseOperator,
    CalqueResumeOperator,
    CalqueVerifyOperator,
    CalqueWaitOperator,
    CalqueWaitSensor,
    SetDoneSensor,
)
from calque.airflow.questions import WaitQuestion

try:
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
except ImportError:
    from airflow.exceptions import AirflowFailException, TaskDeferred
from calque.errors import CalqueError, Refused

config, output = sys.argv[1:]
found = {}


def deferred(task):
    try:
        task.execute({})
    except TaskDeferred as one:
        return one


def fired(trigger):
    place, arguments = trigger.serialize()
    assert "of-all-pages" not in json.dumps(arguments)
    module, _, name = place.rpartition(".")
    again = getattr(__import__(module, fromlist=[name]), name)(**arguments)

    async def first():
        return await anext(again.run())

    return asyncio.run(first()).payload


def error_of(call):
    try:
        call()
    except (AirflowFailException, CalqueError) as error:
        return f"{type(error).__name__}: {error}"


# Airflow lists the provider and its type of connection.
manager = ProvidersManager()
found["provider"] = manager.providers["calque-replicator"].data["name"]
hook = manager.hooks["calque"]
found["hook"] = [hook.hook_class_name, hook.hook_name]
found["connection"] = CalqueHook().test_connection()

# As it was: by the configuration on the worker.
place = {"config": config, "table": "sales.orders", "target": "dr"}
sensor = SetDoneSensor(task_id="ready", partition={"ds": "{{ ds }}"}, **place)
assert isinstance(sensor, BaseSensorOperator)
sensor.render_template_fields({"ds": "2024-01-01"})
found["partition"], found["poke"] = sensor.partition, sensor.poke({})
wrong = SetDoneSensor(task_id="wrong", partition={"ds": "x"}, **(place | {"target": "drr"}))
found["refused"] = error_of(lambda: wrong.poke({}))

# Over HTTP, in a worker's place and by a trigger.
asked = {"table": "sales.orders", "target": "dr", "poke_interval": 0.01}
waits = CalqueDoneSensor(task_id="waits", partition={"ds": "{{ ds }}"}, deferrable=True, **asked)
waits.render_template_fields({"ds": "2024-01-02"})
event = fired(deferred(waits).trigger)
found["event"] = event["state"]
waits.execute_complete({}, event)
pokes = CalqueDoneSensor(task_id="pokes", partition={"ds": "2024-01-03"}, **asked)
pokes.execute({})
refused = CalqueDoneSensor(task_id="refused", partition={"ds": "2024-01-04"}, **(asked | {"table": "none"}))
found["refused set"] = error_of(lambda: refused.poke({}))
sensor = CalqueWaitSensor(task_id="event", target="dr", event_id="{{ ti }}", poke_interval=0.01, deferrable=True)
sensor.render_template_fields({"ti": 812})
sensor.execute_complete({}, fired(deferred(sensor).trigger))
wait = CalqueWaitOperator(task_id="head", target="dr", poll_interval=0.01)
found["position"] = wait.execute({})
lazy = CalqueWaitOperator(task_id="lazy", target="dr", event_id=900, poll_interval=0.01, deferrable=True)
found["later position"] = lazy.execute_complete({}, fired(deferred(lazy).trigger))

# By the configuration that the connection's extra names.
CalquePauseOperator(task_id="pause", target="dr").execute({})
found["paused"] = CalqueHook().local().ask(WaitQuestion("dr", 812)).reason
CalqueResumeOperator(task_id="resume", target="dr", config=config).execute({})
found["resumed"] = CalqueHook().local().ask(WaitQuestion("dr", 812)).reason
found["verify"] = error_of(lambda: CalqueVerifyOperator(task_id="verify", target="dr", tables=["sales.*"]).execute({}))
with open(output, "w") as file:
    json.dump(found, file)
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
from calque.model.names import TableName
from calque.plugins.marks.api.sets import DoneSets
from calque.plugins.marks.model import Mark

assert DoneSets(APP.wiring(APP.load(sys.argv[1]))).store.add(
    Mark(1, TableName("sales", "orders"), "r5", {"ds": "2024-01-01"}, 5, 1, 2**62)
)
"""
STATUS = {"sources": [{"source": {"name": "hq", "head": 812}}], "targets": {"dr": {"source": "hq"}}}
LOOKS = 3
"""The number of questions after which the answer is a yes."""


class Wait:
    """The wait for an event that the target shows at the last look."""

    def __init__(self, event_id: int, look: int) -> None:
        self.event_id, self.has_reached = event_id, look >= LOOKS

    def look(self) -> Waited:
        return Waited(has_reached=self.has_reached, position=self.event_id, is_mended=True)

    def late(self, _waited: Waited, _timeout: float) -> Unavailable:
        return Unavailable(f"dr does not show event {self.event_id}", "It is behind", "Wait longer")


class Process:
    """The answers of a process, where each set and each event comes with the last of `LOOKS` questions."""

    def __init__(self) -> None:
        self.sets: dict[str, count[int]] = {}
        self.events: dict[int, count[int]] = {}

    def done(self, given: Mapping[str, str]) -> tuple[int, Any]:
        if given["table"] != "sales.orders":
            return 400, {"error": "There is no such table."}
        is_done = next(self.sets.setdefault(given["ds"], count(1))) >= LOOKS
        return 200 if is_done else 404, {"done": is_done, "reason": "" if is_done else "it is not marked"}

    def wait(self, _target: str, event_id: int) -> EventWait:
        return Wait(event_id, next(self.events.setdefault(event_id, count(1))))


def run(python: str | Path, *arguments: str | Path, **options: Any) -> None:
    subprocess.run([python, *arguments], check=True, timeout=1500, **options)


def installed(folder: Path, airflow: str) -> str:
    """The Python of an environment that has this Airflow and calque's wheel, and behind Airflow's own packages those
    that calque needs."""
    venv.create(folder / "environment", with_pip=True)
    python = str(folder / "environment" / "bin" / "python")
    run(python, *PIP, "install", airflow)
    built = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder / "wheel")
    run(sys.executable, *PIP, "wheel", *built, ROOT)
    [wheel] = (folder / "wheel").glob("*.whl")
    run(python, *PIP, "install", "--no-deps", "--no-index", wheel)
    [packages] = (folder / "environment" / "lib").glob("python*/site-packages")
    (packages / "calque.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("airflow", AIRFLOWS)
def test_the_provider_works_in_the_real_airflow(airflow: str, tmp_path: Path) -> None:
    config, token, output = (tmp_path / name for name in ("calque.toml", "token", "output"))
    config.write_text(CONFIG.format(root=tmp_path))
    token.write_text(TOKEN)
    run(sys.executable, "-c", MARK, config, cwd=tmp_path)
    python = installed(tmp_path, airflow)
    process = Process()
    pages = Pages(
        lambda: ProcessSample(sources=(), targets=()),
        lambda _: (b"", ""),
        lambda: STATUS,
        wait=process.wait,
        asked={"/done": process.done},
    )
    serving = serve(Endpoint("127.0.0.1", 0), pages, Access(Tokens(FileSecret(str(token))), None))
    host, port = serving.listener.getsockname()[:2]
    connection = {
        "conn_type": "calque",
        "host": host,
        "port": port,
        "password": TOKEN,
        "extra": {"config": str(config)},
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_CALQUE_DEFAULT": json.dumps(connection),
    }
    try:
        run(python, "-c", PROGRAM, config, output, cwd=tmp_path, env=environment)
    finally:
        serving.end()
    found = json.loads(output.read_text())
    assert found["provider"] == "calque"
    assert found["hook"] == ["calque.airflow.hook.CalqueHook", "calque"]
    assert found["connection"] == [True, "calque answers. Its targets are: dr."]
    assert found["partition"] == {"ds": "2024-01-01"}
    assert found["poke"] is False
    assert 'no target "drr". The nearest is dr.' in found["refused"]
    assert found["event"] == "yes"
    assert found["refused set"] == "AirflowFailException: There is no such table."
    assert (found["position"], found["later position"]) == (812, 900)
    assert "An operator has paused it" in found["paused"]
    assert "It has no epoch yet" in found["resumed"]
    assert found["verify"].startswith("Unavailable: ")
