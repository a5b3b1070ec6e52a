"""The endpoint of a running process: verdicts, metrics, and addresses that are taken."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from calque.commands.check import look_at_endpoint
from calque.config import load
from calque.config.checks import Endpoint, endpoint
from calque.control.processes import ProcessPresence
from calque.engine.check.findings import Findings
from calque.engine.window.result import Window
from calque.errors import Refused, Unavailable
from calque.model.ledger import Bridge, Epoch, Parts, Reread, RereadCause
from calque.model.names import Span
from calque.serve.heartbeat import Heartbeat
from calque.serve.http import DEFAULT, Pages, Serving, hindrances, serve
from calque.serve.lag_clock import MOST, HeadTimes
from calque.serve.metrics import CaptureLook, Meters, ProcessView, TargetLook
from calque.wiring.wiring import Wiring

CAPTURES = CaptureLook("running", None, True, 12, 12)
RUNS = TargetLook("dr", "running", None, True, 10, 3, 2, 1.5, {"live": 4, "quarantined": 1})
WELL = ProcessView("hq", CAPTURES, (RUNS,))
ANY = Endpoint("127.0.0.1", 0)


@contextmanager
def served(look: Callable[[], ProcessView], where: Endpoint | None = ANY) -> Iterator[Serving]:
    found = serve(where, Pages(look, Meters(look).text, lambda: {"targets": {}}))
    try:
        yield found
    finally:
        found.end()


def read(serving: Serving, path: str) -> tuple[int, str]:
    try:
        with urlopen(serving.address + path, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_what_goes_well_is_healthy_and_ready() -> None:
    with served(lambda: WELL) as serving:
        for page in ("/healthz", "/readyz"):
            assert read(serving, page) == (200, '{\n  "ok": true,\n  "problems": []\n}\n')
        assert json.loads(read(serving, "/status")[1]) == {"targets": {}}
        assert read(serving, "/nothing")[0] == 404


@pytest.mark.parametrize(
    ("look", "problems"),
    [
        (ProcessView("hq", None, ()), ["it starts"]),
        (ProcessView("hq", CaptureLook("starting", None, False, None, None), (RUNS,)), ["capture is starting"]),
        (ProcessView("hq", CaptureLook("running", "No answer.", False, 1, 1), (RUNS,)), ["capture: No answer."]),
        (ProcessView("hq", CAPTURES, (TargetLook("dr", "paused", None, True),)), ["dr is paused"]),
        (ProcessView("hq", None, (TargetLook("dr", "failed", "It broke.", True),)), ["dr is failed: It broke."]),
        (ProcessView("hq", None, (TargetLook("dr", "running", "No answer.", False),)), ["dr: No answer."]),
        (ProcessView("hq", CAPTURES, (RUNS,), silent=("dr",)), ["dr does not turn"]),
    ],
)
def test_what_keeps_it_from_its_work_makes_it_unready(look: ProcessView, problems: list[str]) -> None:
    assert hindrances(look)[: len(problems)] == problems
    with served(lambda: look) as serving:
        assert read(serving, "/readyz")[0] == 503
        assert read(serving, "/healthz")[0] == (503 if look.silent else 200)


def test_metrics_tell_what_is_in_memory_and_what_windows_did() -> None:
    meters = Meters(lambda: WELL)
    window = Window(Span(8, 10), events=2)
    window.applied.calls, window.applied.files, window.applied.bytes = 3, 4, 500
    window.epoch = Epoch(
        *(3, 10, 8, "", "window"),
        bridges=(Bridge("sales.x", 8, 10),),
        parts=(Parts("sales.x", 8, 10), Parts("sales.y", 8, 9)),
        rereads=(Reread("sales.z", 9, RereadCause.GAP, "gap 1"),),
        disarmed=("sales.w",),
    )
    meters.window("dr", window, 0.3)
    meters.window("dr", Window(Span(10, 10)), 0.01)
    found = dict(line.rsplit(" ", 1) for line in meters.text().decode().splitlines() if not line.startswith("#"))
    expected = {
        'calque_info{source="hq"}': 1,
        "calque_source_reachable": 1,
        "calque_source_head_event_id": 12,
        "calque_journal_last_event_id": 12,
        'calque_target_state{state="running",target="dr"}': 1,
        'calque_target_state{state="failed",target="dr"}': 0,
        'calque_target_position_event_id{target="dr"}': 10,
        'calque_target_lag_events{target="dr"}': 2,
        'calque_target_lag_seconds{target="dr"}': 1.5,
        'calque_target_tables{state="quarantined",target="dr"}': 1,
        'calque_calls_total{target="dr"}': 3,
        'calque_files_total{target="dr"}': 4,
        'calque_bytes_total{target="dr"}': 500,
        'calque_epochs_total{target="dr"}': 1,
        'calque_bridges_total{target="dr"}': 1,
        'calque_parts_total{target="dr"}': 2,
        'calque_rereads_total{cause="hole",target="dr"}': 0,
        'calque_rereads_total{cause="gap",target="dr"}': 1,
        'calque_disarmed_total{target="dr"}': 1,
        'calque_window_seconds_count{target="dr"}': 2,
        'calque_window_seconds_bucket{le="0.2",target="dr"}': 1,
    }
    assert {name: float(found[name]) for name in expected} == expected


def test_an_address_that_is_taken_is_told_and_the_default_one_gives_way() -> None:
    with served(lambda: WELL) as first:
        port = int(first.address.rsplit(":", 1)[1])
        with (
            pytest.raises(Unavailable, match=f"can't be served at 127.0.0.1:{port}"),
            served(lambda: WELL, Endpoint("127.0.0.1", port)),
        ):
            pass
    with served(lambda: WELL, None) as one, served(lambda: WELL, None) as other:
        assert one.address != other.address
        assert other.address.startswith(f"http://{DEFAULT.host}:")


def test_an_address_that_can_not_be_had_is_refused() -> None:
    with pytest.raises(Refused, match="can't be served at"), served(lambda: WELL, Endpoint("192.0.2.1", 1)):
        pass


@pytest.mark.parametrize("text", ["127.0.0.1:9400", "[::1]:9400", "localhost:0"])
def test_addresses(text: str) -> None:
    assert str(endpoint(text)) == text


@pytest.mark.parametrize("text", ["9400", ":9400", "localhost", "localhost:", "a b:1", "::1:9400", "h:70000"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Refused, match="is no address"):
        endpoint(text)


@pytest.mark.parametrize(
    ("section", "address", "default"),
    [
        ("", None, True),
        ("[serve]\n", None, True),
        ('[serve]\naddress = ""\n', None, False),
        ('[serve]\naddress = "localhost:1"\n', Endpoint("localhost", 1), False),
    ],
)
def test_it_is_served_by_default_and_not_where_the_configuration_says_so(
    tmp_path: Path, section: str, address: Endpoint | None, default: bool
) -> None:
    path = tmp_path / "calque.toml"
    source = '[source]\nname = "hq"\nmetastore = "thrift://h:1"\n[targets.dr]\nmetastore = "thrift://h:2"\n'
    path.write_text(f'{section}{source}warehouse = "dr"\n')
    found = load(path).serve
    assert (found.address, found.is_default()) == (address, default)


def test_the_lag_counts_from_when_the_first_event_that_is_missing_was_seen() -> None:
    heads = HeadTimes()
    assert (heads.newest(), heads.lag_seconds(5, 100.0)) == (None, 0.0)
    for head, at in ((3, 10.0), (3, 12.0), (7, 20.0), (9, 30.0)):
        heads.note_head(head, at)
    assert [heads.lag_seconds(position, 40.0) for position in (0, 2, 3, 6, 7, 9, 11)] == [30, 30, 20, 20, 10, 0, 0]
    heads.note_event(8, 45.0)
    assert heads.newest() == 9
    heads.note_event(10, 45.0)
    assert heads.lag_seconds(9, 46.0) == 1
    heads.note_head(4, 50.0)
    assert (heads.newest(), heads.lag_seconds(3, 51.0)) == (4, 1.0)


def test_a_long_past_is_remembered_coarsely() -> None:
    heads = HeadTimes()
    for number in range(5 * MOST):
        heads.note_head(number, float(number))
    assert len(heads.ids) <= MOST
    assert 0 <= heads.lag_seconds(4000, 20_000.0) - (20_000 - 4001) + 64 <= 128


def test_who_does_not_answer_is_noticed_and_so_is_an_answer() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def ask() -> int:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            raise Unavailable("Nobody answers", str(error), "Wait") from error
        return 7

    pulse = Heartbeat(ask, "x")
    pulse.look()
    assert (pulse.answer, pulse.problem) == (7, None)
    server.close()
    pulse.look()
    assert pulse.problem is not None
    assert "Nobody answers" in pulse.problem


def configured(folder: Path, port: int) -> Wiring:
    path = folder / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        f'[serve]\naddress = "127.0.0.1:{port}"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    )
    return Wiring(load(path))


def test_check_finds_an_address_that_another_has_and_none_that_a_process_of_ours_serves(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wiring, findings = configured(tmp_path, listener.getsockname()[1]), Findings()
        look_at_endpoint(wiring, findings)
        [finding] = findings.entries
        assert f"can't be served at 127.0.0.1:{listener.getsockname()[1]}" in finding.what
        assert (finding.where, findings.unreachable) == ("configuration", True)
        presence, findings = ProcessPresence(wiring.control), Findings()
        presence.serves = f"http://127.0.0.1:{listener.getsockname()[1]}"
        presence.begin(())
        try:
            look_at_endpoint(wiring, findings)
        finally:
            presence.end()
        assert findings.entries == []
    look_at_endpoint(wiring, findings)
    assert findings.entries == []
