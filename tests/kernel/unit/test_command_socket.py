"""A running process answers questions of commands, and commands find the answer themselves where none does."""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.cli import main
from calque.control.asking import SOCKETS, Declined, ask, digest_of_file, error_document, error_of, state_and_digest
from calque.errors import Broken, CalqueError, Refused, StatementSyntaxError, Unavailable, Where, WrongUsage
from calque.streams import command_socket
from calque.streams.command_socket import AT_A_TIME, CommandSocket
from calque.wiring.wiring import Wiring

Questions = Mapping[str, Callable[[Wiring, Mapping[str, Any]], Any]]


def echo(_: Wiring, arguments: Mapping[str, Any]) -> Any:
    return {"asked": arguments}


def refuse(*_: object) -> Any:
    raise Refused("There is no epoch 7", "There are epochs 1 to 3", "Name one of them")


def break_down(*_: object) -> Any:
    raise KeyError("d1.t")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    )
    return path


@pytest.fixture
def begin(config: Path) -> Iterator[Callable[..., CommandSocket]]:
    begun: list[CommandSocket] = []

    def begin(questions: Questions, digest: Callable[[], str] | None = None) -> CommandSocket:
        wiring = APP.wiring(APP.load(config))
        known = digest_of_file(str(config))
        begun.append(CommandSocket(wiring.state, questions, lambda: wiring, digest or (lambda: known)))
        begun[-1].begin()
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def test_a_command_gets_the_answer_of_the_process(config: Path, begin: Callable[..., CommandSocket]) -> None:
    with pytest.raises(Declined):
        ask(str(config), "echo", {})
    begin({"echo": echo})
    assert ask(str(config), "echo", {"targets": ("dr",)}) == {"asked": {"targets": ["dr"]}}


def test_nobody_else_may_enter_the_folder_of_the_socket_and_nothing_is_left_of_it(
    config: Path, begin: Callable[..., CommandSocket]
) -> None:
    answering = begin({"echo": echo})
    [record] = (config.parent / "state" / SOCKETS).iterdir()
    folder = Path(record.read_text()).parent
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    answering.end()
    assert not folder.exists()
    assert not list(record.parent.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_one(
    config: Path, tmp_path: Path, begin: Callable[..., CommandSocket]
) -> None:
    left = tmp_path / "calque-left" / "commands"
    left.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(os.path.relpath(left))
    record = config.parent / "state" / SOCKETS / "left"
    record.parent.mkdir(parents=True)
    record.write_text(os.path.relpath(left))
    begin({"echo": echo})
    assert not left.parent.exists()
    assert ask(str(config), "echo", {}) == {"asked": {}}


@pytest.mark.parametrize(
    "error",
    [
        WrongUsage("--target is needed once", "There are a, b", "Name one of them"),
        Refused("a", "b", "c", Where("calque.toml", 7, "targets.dr")),
        Unavailable("a", "b", "c"),
        Broken("a", "b", "c"),
        StatementSyntaxError("a", "b", "c", "SHOW TABELS\n     ^"),
    ],
)
def test_an_error_is_the_same_wherever_it_is_met(error: CalqueError) -> None:
    again = error_of(json.loads(json.dumps(error_document(error))))
    assert (again.exit_code, str(again), again.where) == (error.exit_code, str(error), error.where)
    assert getattr(again, "excerpt", None) == getattr(error, "excerpt", None)


def test_the_errors_answer_ends_the_command(config: Path, begin: Callable[..., CommandSocket]) -> None:
    begin({"refuse": refuse})
    with pytest.raises(Refused, match=r"There is no epoch 7\. There are epochs 1 to 3\. Name one of them\."):
        ask(str(config), "refuse", {})


def test_a_defect_of_the_process_is_no_answer(config: Path, begin: Callable[..., CommandSocket]) -> None:
    begin({"break": break_down})
    with pytest.raises(Declined):
        ask(str(config), "break", {})


def test_a_process_under_another_configuration_declines(config: Path, begin: Callable[..., CommandSocket]) -> None:
    begin({"echo": echo})
    config.write_text(config.read_text() + 'grace = "2h"\n')
    with pytest.raises(Declined):
        ask(str(config), "echo", {})


def test_variables_that_set_keys_are_of_the_configuration(config: Path) -> None:
    state, plain = state_and_digest(config, {"HOME": "/"})
    assert state == config.parent / "state"
    elsewhere, other = state_and_digest(config, {"CALQUE__STATE__PATH": "/var/calque"})
    assert elsewhere == Path("/var/calque")
    assert state_and_digest(config, {"HOME": "/root"}) == (state, plain)
    assert other != plain


def test_a_configuration_that_comes_through_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "calque.toml"
    os.mkfifo(pipe)
    with pytest.raises(Declined):
        ask(str(pipe), "echo", {})
    assert digest_of_file(str(pipe)) == ""


def test_a_process_of_another_build_declines(config: Path, begin: Callable[..., CommandSocket]) -> None:
    begin({"echo": echo}).build = "another"
    with pytest.raises(Declined):
        ask(str(config), "echo", {})


def test_a_process_that_hangs_holds_no_command_up(
    config: Path, tmp_path: Path, begin: Callable[..., CommandSocket]
) -> None:
    place = os.path.relpath(tmp_path / "hung")
    records = config.parent / "state" / SOCKETS
    records.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(place)
        hung.listen()
        (records / "0").write_text(place)
        with pytest.raises(Declined):
            ask(str(config), "echo", {})
        begin({"echo": echo})
        assert (records / "0").exists()
        assert ask(str(config), "echo", {}) == {"asked": {}}


def test_more_questions_than_a_process_answers_at_a_time_are_declined(
    config: Path, begin: Callable[..., CommandSocket]
) -> None:
    answered, asked = threading.Event(), threading.Semaphore(0)

    def wait(*_: object) -> Any:
        asked.release()
        return answered.wait(60)

    begin({"wait": wait})
    found: list[bool] = []
    asking = [threading.Thread(target=lambda: found.append(ask(str(config), "wait", {}))) for _ in range(AT_A_TIME)]
    for thread in asking:
        thread.start()
    for _ in asking:
        assert asked.acquire(timeout=60)
    with pytest.raises(Declined):
        ask(str(config), "wait", {})
    answered.set()
    for thread in asking:
        thread.join(60)
    assert found == [True] * AT_A_TIME


def test_without_a_folder_for_the_socket_the_process_goes_on(
    config: Path, monkeypatch: pytest.MonkeyPatch, begin: Callable[..., CommandSocket]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(config / "no folder"))
    monkeypatch.setattr(tempfile, "tempdir", str(config / "no folder either"))
    begin({"echo": echo})
    with pytest.raises(Declined):
        ask(str(config), "echo", {})


def test_a_runtime_folder_that_can_t_be_used_is_passed_over(
    config: Path, monkeypatch: pytest.MonkeyPatch, begin: Callable[..., CommandSocket]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(config / "no folder"))
    begin({"echo": echo})
    assert ask(str(config), "echo", {"said": 1}) == {"asked": {"said": 1}}


QUESTIONS = (
    ("status",),
    ("status", "--json"),
    ("epochs", "list"),
    ("epochs", "show", "7"),
    ("epochs", "diff", "1", "2"),
    ("quarantine", "list", "--json"),
    ("quarantine", "list", "--target", "rd"),
    ("history", "sales.x"),
    ("sql", "SHOW TABLES AT dr"),
    ("sql", "show epochs; SHOW TARGETS", "--json"),
    ("sql", "SHOW TABLES AT dr", "--csv"),
    ("sql", "SHOW TABELS AT dr"),
    ("sql", "SHOW TABLES AT dr; DROP TABLE x"),
    ("done", "list"),
    ("done", "check", "sales.x", "ds=1", "--json"),
    ("done", "mark", "sales.x", "ds=1"),
    ("done", "wait", "sales.x", "ds=1", "--timeout", "0.1"),
)


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_a_command_says_the_same_with_a_process_and_without(
    words: tuple[str, ...],
    config: Path,
    begin: Callable[..., CommandSocket],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said() -> tuple[int, str, str]:
        code = main([*words, "-c", str(config)])
        return code, *capsys.readouterr()

    alone, answered = said(), []

    def noting(name: str, question: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (answered.append(name), question(*given))[1]

    begin({name: noting(name, question) for name, question in APP.questions().items()})
    assert said() == alone
    assert answered


def test_the_name_of_the_socket_fits_into_an_address() -> None:
    assert len(f"/run/user/1000000000/{command_socket.PREFIX}12345678/{command_socket.NAME}") < 100
