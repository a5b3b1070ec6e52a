"""What a running process takes over of another configuration, and how it is asked."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from calque.adapters.control import ControlStore
from calque.app import APP
from calque.config import Config
from calque.control.process_locks import Roles
from calque.control.processes import Answer, ProcessPresence, answers, ask_reload, processes
from calque.errors import Refused, Unavailable
from calque.streams.reload import ConfigurationChange, ConfigurationReader, configuration_change, require_reloadable
from calque.streams.replicator_process import ReplicatorProcess

SOURCE = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'


def target(name: str, more: str = "") -> str:
    include = f'include = ["{name}.*"]\n' if "include" not in more else ""
    return f'[targets.{name}]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "{name}"\n{include}{more}\n'


def config(folder: Path, text: str) -> Config:
    (folder / "calque.toml").write_text(text)
    return APP.load(folder / "calque.toml")


BASE = SOURCE + target("a") + target("b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BASE, ConfigurationChange((), (), ())),
        (SOURCE + target("a", 'rename = { "a" = "x" }') + target("b"), ConfigurationChange((), ("a",), ("a",))),
        (SOURCE + target("a", 'exclude = ["a.t"]') + target("b"), ConfigurationChange(("hq",), ("a",), ("a",))),
        (SOURCE + target("b") + target("c"), ConfigurationChange(("hq",), ("a",), ("c",))),
        (SOURCE + 'poll = "1s"\n' + target("a") + target("b"), ConfigurationChange(("hq",), ("a", "b"), ("a", "b"))),
        (BASE + "[window]\nmax_events = 5\n", ConfigurationChange((), ("a", "b"), ("a", "b"))),
    ],
)
def test_only_what_has_another_configuration_is_disturbed(
    tmp_path: Path, text: str, found: ConfigurationChange
) -> None:
    before, now = config(tmp_path, BASE), config(tmp_path, text)
    assert (
        configuration_change(before, now, tuple(before.targets), ConfigurationReader(lambda: now).targets(now)) == found
    )


def test_a_process_keeps_to_the_targets_that_it_was_started_for(tmp_path: Path) -> None:
    now = config(tmp_path, BASE)
    assert [ConfigurationReader(lambda: now, named).targets(now) for named in ((), ("b", "gone"), None)] == [
        ("a", "b"),
        ("b",),
        (),
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (BASE.replace('"hq"', '"other"'), "[source] name"),
        (BASE.replace("127.0.0.1:1", "127.0.0.1:9"), "[source] metastore"),
        (BASE + '[state]\npath = "elsewhere"\n', "[state] changed"),
        (BASE + '[journal]\nretention = "1d"\n', "[journal] changed"),
        (SOURCE + target("a", 'consistency = "database"\ndrops = "keep"') + target("b"), "exclude each other"),
    ],
)
def test_what_needs_a_new_start_is_refused(tmp_path: Path, text: str, what: str) -> None:
    before, now = config(tmp_path, BASE), config(tmp_path, text)
    with pytest.raises(Refused) as refused:
        require_reloadable(before, now)
    assert what in str(refused.value)


def test_a_refused_reload_changes_nothing_and_is_answered(tmp_path: Path) -> None:
    before = config(tmp_path, BASE)
    path = tmp_path / "calque.toml"
    run = ReplicatorProcess(APP.wiring(before), ("a", "b"), reread=ConfigurationReader(lambda: APP.load(path)))
    control = run.wiring.control
    run.presence.begin(run.targets)
    try:
        for text, code in (("[source]", 65), (BASE.replace('"hq"', '"other"'), 65)):
            path.write_text(text)
            request = ask_reload(control)
            assert run.presence.reload_requested.wait(30)
            run.reload()
            [process] = answers(control, request, 30)
            assert (process.answer.code, bool(process.answer.problem), process.targets) == (code, True, ("a", "b"))
            assert run.wiring.config is before
    finally:
        run.presence.end()
    assert processes(control) == []


def test_a_target_that_another_process_has_is_not_taken_over(tmp_path: Path) -> None:
    before = config(tmp_path, SOURCE + target("a"))
    run = ReplicatorProcess(
        APP.wiring(before),
        ("a",),
        reread=ConfigurationReader(lambda: config(tmp_path, SOURCE + target("a") + target("b") + target("c"))),
    )
    run.presence.begin(run.targets)
    try:
        with Roles(run.wiring.state) as other:
            other.take({"target c": 30.0})
            run.reload()
            assert "Another process runs target c" in run.presence.answered.problem
            assert (run.targets, run.wiring.config) == (("a",), before)
            other.take({"target b": 30.0})
    finally:
        run.presence.end()


def test_who_asks_waits_for_all_that_run_and_for_no_other(tmp_path: Path) -> None:
    control = ControlStore(tmp_path)
    assert answers(control, ask_reload(control), 0) == []
    one, other = (ProcessPresence(control, tmp_path) for _ in range(2))
    one.begin(("a",))
    other.begin(("b",))
    request = ask_reload(control)
    one.answer(Answer(request), ("a",))
    with pytest.raises(Unavailable, match="did not take the configuration over"):
        answers(control, request, 0)
    ending = threading.Thread(target=other.end)
    ending.start()
    assert [process.targets for process in answers(control, request, 30)] == [("a",)]
    ending.join()
    one.end()
