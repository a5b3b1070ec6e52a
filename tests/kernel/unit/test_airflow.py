"""Airflow's questions to a running process, without Airflow: addresses, answers, and the wait of a trigger."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from calque.airflow import provider
from calque.airflow.local import Local
from calque.airflow.places import local_of, place_of
from calque.airflow.polling import polled
from calque.airflow.questions import (
    Answer,
    AnswerState,
    DoneQuestion,
    Question,
    StatusQuestion,
    WaitQuestion,
    answer_from,
    answer_of,
    event_number,
    head_of,
)
from calque.airflow.server import Server
from calque.config.checks import Endpoint
from calque.config.extras import DISTRIBUTION
from calque.control.waiting import Waited
from calque.errors import Refused, Unavailable
from calque.model.secrets import FileSecret
from calque.model.tls import ServerTls
from calque.serve.guard import Tokens
from calque.serve.http import Access, serve
from calque.serve.pages import EventWait, Pages, no_target
from calque.serve.samples import ProcessSample
from support.places import ROOT
from support.services.authority import Authority

TOKEN = "of-all-pages-é"
DONE = DoneQuestion("sales.orders", {"ds": "2024-01-01"}, "dr")
WAIT = WaitQuestion("dr", 12)
STATUS = {
    "sources": [{"source": {"name": "hq", "head": 812}}, {"source": {"name": "eu", "head": None}}],
    "targets": {"dr": {"source": "hq"}, "far": {"source": "eu"}},
}
CONNECTION = {"name": "calque_default", "host": "", "port": None, "token": None, "extra": {}}
IDLE = ProcessSample(sources=(), targets=())


class Wait:
    """The wait for an event that the target shows where `is_there` says so."""

    def __init__(self, is_there: bool) -> None:
        self.is_there = is_there

    def look(self) -> Waited:
        return Waited(has_reached=self.is_there, position=12 if self.is_there else 11, is_mended=True)

    def late(self, waited: Waited, _timeout: float) -> Unavailable:
        return Unavailable("dr does not show event 12", f"Its position is {waited.position}", "Wait longer")


def done(given: Mapping[str, str]) -> tuple[int, Any]:
    """The verdict on a set by its day: the first is done, the second is not, the third has ended."""
    if given["table"] != "sales.orders":
        raise Refused("There is no such table", "The source has none", "Name another one")
    code, state = {"2024-01-01": (200, "done"), "2024-01-02": (404, "not marked")}.get(given["ds"], (409, "ended"))
    reason = "" if code == 200 else f"it is {state}"
    return code, {"table": given["table"], "target": given.get("target"), "done": code == 200, "reason": reason}


def begin(is_there: bool) -> Callable[[str, int], EventWait]:
    return lambda target, event_id: Wait(is_there) if target == "dr" else no_target(target, event_id)


@contextmanager
def served(folder: Path, *, is_there: bool = True, tls: ServerTls | None = None) -> Iterator[str]:
    """The address of a process whose pages need `TOKEN`."""
    (folder / "token").write_text(TOKEN, encoding="utf-8")
    pages = Pages(lambda: IDLE, lambda _: (b"", ""), lambda: STATUS, wait=begin(is_there), asked={"/done": done})
    serving = serve(Endpoint("127.0.0.1", 0), pages, Access(Tokens(FileSecret(str(folder / "token"))), tls))
    try:
        yield serving.address
    finally:
        serving.end()


def asked_twice(server: Server, question: Question) -> Answer:
    """The answer that a worker gets, which is also that of a trigger."""
    answer = server.ask(question)

    async def by_client() -> Answer:
        context = server.context()
        async with httpx2.AsyncClient(verify=context if context is not None else True) as client:
            return await server.ask_by(client, question, httpx2.HTTPError)

    by_trigger = asyncio.run(by_client())
    assert (by_trigger.state, by_trigger.document) == (answer.state, answer.document)
    return answer


def state(answer: Answer) -> tuple[str, str]:
    return answer.state.value, answer.reason


def test_a_set_that_is_done_is_a_yes_and_any_other_is_asked_for_again(tmp_path: Path) -> None:
    days = {"2024-01-01": ("yes", ""), "2024-01-02": ("not_yet", "it is not marked"), "x": ("not_yet", "it is ended")}
    with served(tmp_path) as address:
        server = Server(address, TOKEN)
        for day, expected in days.items():
            answer = asked_twice(server, DoneQuestion("sales.orders", {"ds": day}, "dr"))
            assert state(answer) == expected
            assert answer.document["target"] == "dr"
        assert asked_twice(server, DoneQuestion("sales.orders", {"ds": "2024-01-01"})).document["target"] is None


def test_an_event_that_the_target_shows_is_a_yes_with_the_position(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        assert asked_twice(Server(address, TOKEN), WAIT).document == {"target": "dr", "event_id": 12, "position": 12}
    with served(tmp_path, is_there=False) as address:
        reason = "dr does not show event 12. Its position is 11. Wait longer."
        assert state(asked_twice(Server(address, TOKEN), WAIT)) == ("not_yet", reason)


def test_what_another_try_does_not_change_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        server = Server(address, TOKEN)
        table = asked_twice(server, DoneQuestion("sales.order", {"ds": "2024-01-01"}))
        assert state(table) == ("refused", "There is no such table. The source has none. Name another one.")
        assert state(asked_twice(server, WaitQuestion("rd", 12)))[0] == "refused"
        for token in ("", "wrong"):
            answer = asked_twice(Server(address, token), WAIT)
            assert state(answer) == ("refused", "This page needs a token: Authorization: Bearer TOKEN.")


def test_a_page_that_an_older_process_lacks_is_refused() -> None:
    assert state(answer_of(404, {"error": "There is no /done", "pages": ["/status"]})) == (
        "refused",
        "There is no /done",
    )


def test_a_process_that_does_not_answer_or_is_busy_is_asked_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    answer = asked_twice(Server(f"http://127.0.0.1:{port}"), WAIT)
    assert answer.state is AnswerState.NOT_YET
    assert f"127.0.0.1:{port} does not answer: " in answer.reason
    assert [answer_of(code, {}).state.value for code in (429, 502, 503, 504)] == ["not_yet"] * 4


def test_a_server_has_to_prove_that_it_is_the_right_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with served(tmp_path, tls=ServerTls(*authority.client("127.0.0.1"))) as address:
        assert asked_twice(Server(address, TOKEN, ca=str(authority.ca)), DONE).state is AnswerState.YES
        stranger = asked_twice(Server(address, TOKEN), DONE)
        assert stranger.state is AnswerState.REFUSED
        assert "CERTIFICATE_VERIFY_FAILED" in stranger.reason
    with pytest.raises(Refused, match="can't be used"):
        Server("https://127.0.0.1:1", ca=str(tmp_path / "none")).ask(DONE)


def test_a_trigger_asks_until_the_answer_is_one_to_act_on() -> None:
    answers = iter([answer_of(503, {"error": "busy"})] * 2 + [answer_of(404, {"done": False, "reason": "not marked"})])
    last, notes = answer_of(200, {"done": True}), list[str]()

    async def ask() -> Answer:
        return next(answers, last)

    assert asyncio.run(polled(ask, 0.0, notes.append)) == last
    assert notes == ["busy", "not marked"]
    refused = answer_of(400, {"error": "no such target"})

    async def refuse() -> Answer:
        return refused

    assert asyncio.run(polled(refuse, 0.0, notes.append)) == refused


def test_an_answer_goes_through_an_event_of_airflow_unchanged() -> None:
    answer = answer_of(404, {"done": False, "reason": "not marked"})
    assert answer_from(answer.values()) == answer


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"host": "calque"}, Server("http://calque:9400")),
        ({"host": "calque", "port": 81, "token": "t"}, Server("http://calque:81", "t")),
        ({"host": "https://calque/"}, Server("https://calque:9400")),
        ({"host": "::1", "extra": {"tls": True}}, Server("https://[::1]:9400")),
        ({"host": "calque", "extra": {"tls": "false"}}, Server("http://calque:9400")),
        ({"host": "calque", "extra": {"ca": "/ca.pem"}}, Server("https://calque:9400", ca="/ca.pem")),
        ({"host": "calque", "extra": {"config": "/c.toml"}}, Server("http://calque:9400")),
        ({"extra": {"config": "/c.toml"}}, Local("/c.toml")),
    ],
)
def test_a_connection_names_a_process_or_else_a_configuration(fields: dict[str, Any], place: object) -> None:
    assert place_of({**CONNECTION, **fields}) == place


def test_what_a_process_does_not_do_needs_a_configuration_on_the_worker() -> None:
    assert local_of({**CONNECTION, "host": "calque", "extra": {"config": "/c.toml"}}) == Local("/c.toml")
    with pytest.raises(Refused, match=r"names no configuration.*only on its page.*Add"):
        local_of({**CONNECTION, "host": "calque"})
    with pytest.raises(Refused, match=r"names no configuration.*no host either"):
        place_of(CONNECTION)
    with pytest.raises(Refused, match=r'has a key "confg"[.] The nearest is config'):
        place_of({**CONNECTION, "extra": {"confg": "/c.toml"}})


def test_a_request_names_all_of_the_question_and_no_key_twice() -> None:
    server = Server("http://127.0.0.1:9400")
    of_two = DoneQuestion("sales.orders", {"ds": "2024-01-01", "region": "a&b"}, "dr")
    expected = "/done?table=sales.orders&target=dr&ds=2024-01-01&region=a%26b"
    assert server.url(of_two) == f"http://127.0.0.1:9400{expected}"
    assert server.url(WAIT) == "http://127.0.0.1:9400/wait?target=dr&event_id=12&timeout=0"
    assert server.url(StatusQuestion()) == "http://127.0.0.1:9400/status"
    with pytest.raises(Refused, match=r'called "target".*SetDoneSensor'):
        server.url(DoneQuestion("sales.orders", {"target": "x"}))


def test_the_newest_event_is_that_of_the_target_s_source() -> None:
    assert head_of(STATUS, "dr") == 812
    with pytest.raises(Refused, match=r'no target "rd"\. The targets are: dr, far'):
        head_of(STATUS, "rd")
    with pytest.raises(Refused, match="newest event of eu is not known"):
        head_of(STATUS, "far")


def test_an_event_id_may_come_from_a_template() -> None:
    assert [event_number(one) for one in (12, "12", " 0 ")] == [12, 12, 0]
    for wrong in ("", "None", "-1", "x"):
        with pytest.raises(Refused, match="is no event id"):
            event_number(wrong)


def test_without_a_process_the_state_folder_answers(tmp_path: Path) -> None:
    (tmp_path / "calque.toml").write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\n'
        f'warehouse = "file:{tmp_path}/warehouse"\n'
    )
    local = Local(str(tmp_path / "calque.toml"))
    assert local.ask(WAIT).state is AnswerState.NOT_YET
    refused = local.ask(WaitQuestion("rd", 12))
    assert state(refused)[0] == "refused"
    assert 'no target "rd"' in refused.reason
    assert Local(str(tmp_path / "none.toml")).ask(WAIT).state is AnswerState.REFUSED


def test_what_is_paused_by_a_task_is_paused_for_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from calque.cli import main

    config = tmp_path / "calque.toml"
    config.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\n'
        f'warehouse = "file:{tmp_path}/warehouse"\n'
    )
    local = Local(str(config))
    local.pause("dr", ())
    assert "An operator has paused it" in local.ask(WAIT).reason
    local.pause("dr", ("sales.*",))
    local.resume("dr", ())
    assert main(["resume", "-c", str(config), "--tables", "hr.*"]) == 0
    assert "dr: running; tables: pause sales.*" in capsys.readouterr().out
    with pytest.raises(Refused, match="rd"):
        local.pause("rd", ())


def test_a_worker_that_asks_over_http_needs_none_of_calque_s_dependencies() -> None:
    modules = "calque.airflow.places, calque.airflow.polling, calque.airflow.provider, calque.errors"
    # Without the folder of installed packages.
    subprocess.run([sys.executable, "-S", "-c", f"import {modules}"], check=True, env={"PYTHONPATH": str(ROOT / "lib")})


def test_the_provider_s_metadata_names_what_there_is() -> None:
    info = provider.provider_info()
    assert info["package-name"] == DISTRIBUTION
    modules = {
        name
        for kind in ("hooks", "sensors", "triggers", "operators")
        for integration in info[kind]
        for name in integration["python-modules"]
    }
    files = {f"calque.airflow.{path.stem}" for path in Path(provider.__file__).parent.glob("*.py")}
    assert modules < files
