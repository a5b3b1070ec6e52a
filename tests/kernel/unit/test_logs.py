"""Lines of the log: what each concerns, on whatever thread it is written, and that a program can read all of them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calque.errors import Broken, Refused, Unavailable
from calque.logs.fields import (
    about,
    beside_windows,
    current_fields,
    inherited,
    log_fields,
    window_id,
    with_fields,
)
from calque.logs.lines import JsonFormatter
from calque.logs.setup import report_error
from support.places import ROOT

HOSTILE = "a\x1b[2J\x9b\r\nb\u202e\u2028ß"


def written(**given: Any) -> dict[str, Any]:
    line = JsonFormatter().format(logging.makeLogRecord({"name": "calque.x", "levelname": "INFO", **given}))
    assert line.isascii()
    assert line.isprintable()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def test_a_line_is_one_object_with_what_it_concerns() -> None:
    with log_fields(source="hq", target="dr", window="dr-3-8"):
        found = written(msg="table %s", args=(HOSTILE,), created=1.5, **about(epoch=3, event=12))
    assert found == {
        "timestamp": "1970-01-01T00:00:01.500+00:00",
        "level": "info",
        "logger": "calque.x",
        "message": f"table {HOSTILE}",
        "fields": {"source": "hq", "target": "dr", "window": "dr-3-8", "epoch": 3, "event": 12},
    }
    assert datetime.fromisoformat(found["timestamp"]).utcoffset() == timedelta(0)
    assert written(msg="x")["fields"] == {}


def test_an_error_has_its_type_and_where_it_was() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        found = written(msg="no", exc_info=(type(error), error, error.__traceback__))["error"]
    assert (found["type"], found["message"]) == ("ValueError", HOSTILE)
    assert "raise ValueError(HOSTILE)" in found["traceback"]


def test_arguments_that_do_not_fit_their_text_are_told_all_the_same() -> None:
    assert written(msg="%d tables", args=("no number",))["message"] == "%d tables ('no number',)"


def test_fields_are_those_of_the_work_in_hand_and_go_with_it_to_other_threads() -> None:
    with ThreadPoolExecutor(1) as pool, log_fields(target="dr"):
        with log_fields(window="dr-1-0", table="a.b"):
            assert pool.submit(current_fields).result() == {}
            assert pool.submit(inherited(current_fields)).result() == {
                "target": "dr",
                "window": "dr-1-0",
                "table": "a.b",
            }
            assert pool.submit(beside_windows(current_fields)).result() == {"target": "dr", "table": "a.b"}
            assert with_fields(current_fields, target="two")() == {
                "target": "two",
                "window": "dr-1-0",
                "table": "a.b",
            }
        assert pool.submit(current_fields).result() == {}
        assert current_fields() == {"target": "dr"}
    assert current_fields() == {}


def test_a_window_is_named_by_the_epoch_that_it_leads_to() -> None:
    assert (window_id("dr", None, 0), window_id("dr", 2, 811)) == ("dr-1-0", "dr-3-811")


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_whatever_python_says_of_itself_is_json_too() -> None:
    ended = run(
        """
import logging, threading, warnings
from calque.errors import Refused
from calque.logs.setup import log_to_stderr, report_error
class Bad:
    def __del__(self):
        raise OSError("ignored")
log_to_stderr("json", "info")
log_to_stderr("text", "info")
logging.getLogger("calque.x").info("one")
logging.getLogger("calque.x").debug("not told")
logging.getLogger("library").info("not told")
warnings.warn("two")
def fail(): raise OSError("three")
thread = threading.Thread(target=fail); thread.start(); thread.join()
bad = Bad(); del bad
try:
    raise Refused("five", "b", "c")
except Refused as error:
    report_error(error); report_error(error, error)
raise OSError("last")
"""
    )
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 1
    assert [(line["level"], line.get("error", {}).get("message")) for line in lines] == [
        ("info", None),
        ("warning", None),
        ("error", "three"),
        ("error", "ignored"),
        ("error", None),
        ("error", "five. b. c."),
        ("error", "last"),
    ]
    assert lines[4]["message"] == "five. b. c."
    assert lines[4]["fields"] == {"exit_code": 65}


def test_as_text_an_error_is_the_line_that_it_always_was(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(Unavailable("A", "B", "C"))
    assert capsys.readouterr().err == "calque: A. B. C.\n"
    report_error(Broken("A"), Refused("cause"))
    assert capsys.readouterr().err == "calque.errors.Refused: cause.\ncalque: A.\n"


def test_a_run_that_is_refused_says_so_in_json(tmp_path: Path) -> None:
    file = tmp_path / "calque.toml"
    file.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n[log]\nformat = "json"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
        'consistency = "database"\ndrops = "keep"\n'
    )
    run, job = ("-m", "calque.cli", "run"), (str(ROOT / "jobs" / "replicate.py"),)
    for command, has_traceback in ((run, False), ((*run, "--debug"), True), (job, False)):
        whole = [sys.executable, *command, "-c", str(file)]
        ended = subprocess.run(whole, capture_output=True, text=True, timeout=60, check=False)
        [line] = [json.loads(line) for line in ended.stderr.splitlines()]
        assert (ended.returncode, line["fields"], line["level"]) == (65, {"exit_code": 65}, "error")
        assert "exclude each other" in line["message"]
        assert ("error" in line) is has_traceback
