"""The endpoint of a running process: verdicts, metrics, and addresses that are taken."""

from __future__ import annotations

import hashlib
import json
import platform
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar

from calque.app import APP
from calque.commands.check import look_at_endpoint
from calque.config.checks import Endpoint, endpoint
from calque.control.processes import ProcessPresence
from calque.control.waiting import Waited
from calque.engine.check.findings import Findings, Severity
from calque.engine.sides import told_states
from calque.engine.sides.table_states import TableStates
from calque.engine.window.result import WindowResult
from calque.errors import Refused, Unavailable
from calque.model.ledger import Bridge, Epoch, Parts, Reread, RereadCause, TableRow, TableState
from calque.model.names import Span, TableName
from calque.model.secrets import FileSecret, VariableSecret
from calque.model.tls import ServerTls
from calque.plugins.page.run.routes import FOLDER, ActionRequest, Console, front_page
from calque.plugins.page.run.table_list import TableQuery
from calque.ports.records import Json
from calque.serve import http
from calque.serve.connections import ACCEPTED
from calque.serve.connections import MOST as MOST_OPEN
from calque.serve.guard import Tokens
from calque.serve.http import DEFAULT, Access, Serving, serve
from calque.serve.lag_clock import MOST, HeadTimes
from calque.serve.liveness_probe import LivenessProbe
from calque.serve.metrics import Meters
from calque.serve.pages import MOST_WAITS, EventWait, Pages, hindrances, no_target
from calque.serve.rates import PositionRates, PositionSample
from calque.serve.samples import CaptureSample, ProcessSample, SourceSample, TargetSample
from calque.serve.table_lag import MOST as MOST_TABLES
from calque.serve.table_lag import TableLag, table_lags
from calque.wiring.wiring import Wiring
from support.places import ROOT
from support.services.authority import Authority

CAPTURES = CaptureSample(state="running", problem=None, reachable=True, head=12, last=12)
LAGS = TableLag("sales.x", 7, 5, 90.0)
RUNS = TargetSample(
    name="dr",
    state="running",
    problem=None,
    reachable=True,
    position=10,
    epoch=3,
    lag_events=2,
    lag_seconds=1.5,
    tables={"live": 4, "quarantined": 1},
    lagging=(LAGS,),
)


def of_target(state: str, problem: str | None, *, reachable: bool = True) -> TargetSample:
    return TargetSample(name="dr", state=state, problem=problem, reachable=reachable)


def of_capture(state: str, problem: str | None, event_id: int | None) -> CaptureSample:
    return CaptureSample(state=state, problem=problem, reachable=False, head=event_id, last=event_id)


def of_one(
    capture: CaptureSample | None, targets: tuple[TargetSample, ...], silent: tuple[str, ...] = ()
) -> ProcessSample:
    """A process with one source."""
    return ProcessSample(sources=(SourceSample(name="hq", capture=capture),), targets=targets, silent=silent)


WELL = of_one(CAPTURES, (RUNS,))
ANY = Endpoint("127.0.0.1", 0)


NO_TOKENS = Tokens()
TOKEN, METRICS_TOKEN = "of-all-pages-é", "of-metrics"
SILENT = Console(
    overview=dict,
    lags=lambda _: {},
    tables=lambda _: {},
    every_table=lambda _: iter(()),
    table=lambda *_: {},
    links=lambda _: {},
    about=dict,
    act=lambda _: {},
)
"""A page's process that has nothing to say."""


@contextmanager
def served(
    look: Callable[[], ProcessSample],
    where: Endpoint | None = ANY,
    tokens: Tokens = NO_TOKENS,
    tls: ServerTls | None = None,
    console: Console | None = None,
) -> Iterator[Serving]:
    front = front_page(console, tokens.every is not None) if console is not None else None
    found = serve(where, Pages(look, Meters(look).text, lambda: {"targets": {}}, front), Access(tokens, tls))
    try:
        yield found
    finally:
        found.end()
        assert not found.thread.is_alive()


def read(serving: Serving, path: str, authorization: str = "", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    request = Request(serving.address + path, headers={"Authorization": authorization} if authorization else {})
    try:
        with urlopen(request, timeout=10, context=tls) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    secrets = [FileSecret(str(tmp_path / name)) for name in ("every", "metrics")]
    for secret, value in zip(secrets, (TOKEN, METRICS_TOKEN), strict=True):
        Path(secret.path).write_text(f"{value}\n")
    return Tokens(*secrets)


def test_what_goes_well_is_healthy_and_ready() -> None:
    with served(lambda: WELL) as serving:
        for page in ("/healthz", "/readyz"):
            assert read(serving, page) == (200, "ok\n")
        assert json.loads(read(serving, "/status")[1]) == {"targets": {}}
        assert read(serving, "/nothing")[0] == 404


@pytest.mark.parametrize(
    ("look", "problems"),
    [
        (of_one(None, ()), ["it starts"]),
        (
            of_one(of_capture("starting", None, None), (RUNS,)),
            ["capture is starting"],
        ),
        (
            of_one(of_capture("running", "No answer.", 1), (RUNS,)),
            ["capture: No answer."],
        ),
        (of_one(CAPTURES, (of_target("paused", None),)), ["dr is paused"]),
        (
            of_one(None, (of_target("failed", "It broke."),)),
            ["dr is failed: It broke."],
        ),
        (
            of_one(None, (of_target("running", "No answer.", reachable=False),)),
            ["dr: No answer."],
        ),
        (of_one(CAPTURES, (RUNS,), silent=("dr",)), ["dr does not turn"]),
    ],
)
def test_what_keeps_it_from_its_work_makes_it_unready(look: ProcessSample, problems: list[str]) -> None:
    assert hindrances(look)[: len(problems)] == problems
    with served(lambda: look) as serving:
        assert read(serving, "/readyz")[0] == 503
        assert read(serving, "/healthz")[0] == (503 if look.silent else 200)


def test_metrics_tell_what_is_in_memory_and_what_windows_did() -> None:
    meters = Meters(lambda: WELL)
    window = WindowResult(Span(8, 10), events=2)
    window.applied.calls, window.applied.files, window.applied.bytes = 3, 4, 500
    window.epoch = Epoch(
        3,
        10,
        8,
        "",
        "window",
        bridges=(Bridge("sales.x", 8, 10),),
        parts=(Parts("sales.x", 8, 10), Parts("sales.y", 8, 9)),
        rereads=(Reread("sales.z", 9, RereadCause.GAP, "gap 1"),),
        disarmed=("sales.w",),
    )
    meters.window("dr", window, 0.3, "dr-3-8")
    meters.window("dr", WindowResult(Span(10, 10)), 0.01, "dr-4-10")
    found = dict(line.rsplit(" ", 1) for line in meters.text()[0].decode().splitlines() if not line.startswith("#"))
    expected = {
        'calque_info{source="hq"}': 1,
        'calque_source_reachable{source="hq"}': 1,
        'calque_source_head_event_id{source="hq"}': 12,
        'calque_journal_last_event_id{source="hq"}': 12,
        'calque_target_state{state="running",target="dr"}': 1,
        'calque_target_state{state="failed",target="dr"}': 0,
        'calque_target_position_event_id{target="dr"}': 10,
        'calque_target_lag_events{target="dr"}': 2,
        'calque_target_lag_seconds{target="dr"}': 1.5,
        'calque_target_tables{state="quarantined",target="dr"}': 1,
        'calque_target_paused_tables{target="dr"}': 0,
        'calque_table_lag_events{table="sales.x",target="dr"}': 5,
        'calque_table_lag_seconds{table="sales.x",target="dr"}': 90,
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
    [build] = [name for name in found if name.startswith("calque_build_info{")]
    assert f'python="{platform.python_version()}"' in build
    assert not [name for name in found if "_created{" in name]
    text, media_type = meters.text("application/openmetrics-text; version=1.0.0")
    assert media_type.startswith("application/openmetrics-text")
    named = [exemplar.labels["window"] for exemplar in exemplars(text.decode())]
    assert named == ["dr-4-10", "dr-3-8"]


def exemplars(text: str) -> list[Exemplar]:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return [sample.exemplar for sample in samples if sample.exemplar is not None]


def test_pages_take_their_tokens_and_health_needs_none(tokens: Tokens) -> None:
    # urllib writes headers in Latin-1, the server compares what the bytes mean in UTF-8.
    whole = f"Bearer {TOKEN}".encode().decode("latin-1")
    given = ("", "Bearer", "Bearer wrong", f"Basic {METRICS_TOKEN}", f"bearer {METRICS_TOKEN}", whole)
    expected = {
        "/healthz": [200] * 6,
        "/readyz": [200] * 6,
        "/metrics": [401, 401, 401, 401, 200, 200],
        "/status": [401, 401, 401, 401, 401, 200],
        "/nothing": [401, 401, 401, 401, 401, 404],
        "//metrics": [401, 401, 401, 401, 401, 404],
        "/healthz/../status": [401, 401, 401, 401, 401, 404],
    }
    with served(lambda: WELL, tokens=tokens) as serving:
        assert {path: [read(serving, path, one)[0] for one in given] for path in expected} == expected
        content = read(serving, "/status")[1]
        assert json.loads(content) == {"error": "This page needs a token: Authorization: Bearer TOKEN."}


OWN, FOREIGN = "localhost:1", "calque.evil.example"


@pytest.mark.parametrize(
    ("path", "host", "authorization", "expected"),
    [
        ("/api/overview", OWN, "", 200),
        ("/", OWN, "", 200),
        ("/status", OWN, "", 200),
        ("/metrics", "127.0.0.1", "", 200),
        ("/api/overview", FOREIGN, "", 421),
        ("/", FOREIGN, "", 421),
        ("/metrics", FOREIGN, "", 421),
        ("/api/overview", OWN, "Bearer wrong", 401),
        ("/api/overview", FOREIGN, "Bearer wrong", 401),
        ("/api/overview", FOREIGN, f"Bearer {TOKEN}", 200),
        ("/healthz", FOREIGN, "", 200),
    ],
)
def test_open_reading_needs_no_token_under_the_host_s_own_names(
    tokens: Tokens, path: str, host: str, authorization: str, expected: int
) -> None:
    with served(lambda: WELL, tokens=replace(tokens, reading_is_open=True), console=SILENT) as serving:
        assert answer(serving, path, host, authorization) == expected


@pytest.mark.parametrize(
    ("host", "authorization", "expected"),
    [
        (OWN, "", 401),
        (FOREIGN, "", 401),
        (OWN, "Bearer wrong", 401),
        (OWN, f"Bearer {METRICS_TOKEN}", 401),
        (OWN, f"Bearer {TOKEN}", 200),
    ],
)
def test_with_open_reading_an_action_needs_the_token_as_ever(
    tokens: Tokens, host: str, authorization: str, expected: int
) -> None:
    asked: list[ActionRequest] = []
    console = replace(SILENT, act=lambda one: asked.append(one))
    with served(lambda: WELL, tokens=replace(tokens, reading_is_open=True), console=console) as serving:
        content = b'{"action": "pause", "target": "dr"}'
        assert answer(serving, "/api/actions", host, authorization, content) == expected
    assert len(asked) == (expected == 200)


def answer(serving: Serving, path: str, host: str, authorization: str, content: bytes | None = None) -> int:
    """The status of the answer to a request under that name of the host; with content it is an action."""
    fields = {"Host": host, "Content-Type": "application/json"}
    if authorization:
        fields["Authorization"] = authorization.encode().decode("latin-1")
    try:
        with urlopen(Request(serving.address + path, content, fields), timeout=10) as found:
            return int(found.status)
    except HTTPError as error:
        with error:
            return error.code


def test_libraries_of_the_page_are_as_they_were_published() -> None:
    decisions = (ROOT / "docs" / "decisions" / "page.md").read_text()
    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() in decisions


def test_what_the_page_refuses(tokens: Tokens) -> None:
    asked: list[ActionRequest] = []
    console = replace(SILENT, act=lambda one: asked.append(one))
    action, as_json = b'{"action": "pause", "target": "dr"}', {"Content-Type": "application/json"}

    def post(serving: Serving, content: bytes = action, **headers: str) -> int:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with urlopen(Request(f"{serving.address}/api/actions", content, fields), timeout=10) as answer:
                return int(answer.status)
        except HTTPError as error:
            with error:
                return error.code

    bearer = {"Authorization": f"Bearer {TOKEN}".encode().decode("latin-1")}
    with served(lambda: WELL, tokens=tokens, console=console) as serving:
        status, content = read(serving, "/")
        assert (status, "<title>calque</title>" in content) == (401, True)
        assert read(serving, "/", bearer["Authorization"])[0] == 200
        assert [read(serving, f"/assets/{name}")[0] for name in ("page.js", "nothing.js", "..%2fpages.py")] == [
            200,
            404,
            404,
        ]
        assert read(serving, "/api/overview")[0] == 401
        assert post(serving, **as_json) == 401
        assert post(serving, **as_json, Authorization=f"Bearer {METRICS_TOKEN}") == 401
        assert post(serving, **bearer, Content_Type="text/plain") == 415
        assert post(serving, **bearer, **as_json, Sec_Fetch_Site="cross-site") == 403
        assert [post(serving, bad, **bearer, **as_json) for bad in (b"[", b'{"action": 1}', b'"' * 70_000)] == [
            400,
            400,
            413,
        ]
        assert asked == []
        assert post(serving, **bearer, **as_json) == 200
        assert asked == [ActionRequest("pause", "dr")]
    with served(lambda: WELL, console=console) as serving:
        assert post(serving, **as_json) == 403
        for host, expected in (("localhost:1", 200), ("[::1]:1", 200), ("10.1.2.3", 200), ("calque.evil.example", 421)):
            request = Request(f"{serving.address}/api/overview", headers={"Host": host})
            try:
                with urlopen(request, timeout=10) as answer:
                    found = answer.status
                    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            except HTTPError as error:
                with error:
                    found = error.code
            assert found == expected, host
    assert len(asked) == 1


def test_a_token_that_is_written_anew_counts_at_once_and_without_one_a_page_stays_closed(tokens: Tokens) -> None:
    assert isinstance(tokens.every, FileSecret)
    file = Path(tokens.every.path)
    with served(lambda: WELL, tokens=Tokens(tokens.every)) as serving:
        file.write_text("new")
        assert [read(serving, "/metrics", f"Bearer {one}")[0] for one in ("old", "new")] == [401, 200]
        file.unlink()
        status, content = read(serving, "/metrics", "Bearer new")
        assert (status, str(file) in content) == (503, False)
        assert read(serving, "/healthz")[0] == 200


def test_pages_are_served_over_tls_to_clients_that_show_a_certificate(tmp_path: Path, tokens: Tokens) -> None:
    authority = Authority(tmp_path)
    server = authority.client("127.0.0.1")
    trusting = ssl.create_default_context(cafile=authority.ca)
    with served(lambda: WELL, tls=ServerTls(*server)) as serving:
        assert serving.address.startswith("https://")
        assert read(serving, "/healthz", tls=trusting)[0] == 200
        with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
            read(serving, "/healthz")
    known = ssl.create_default_context(cafile=authority.ca)
    known.load_cert_chain(*authority.client("prometheus"))
    with served(lambda: WELL, tokens=tokens, tls=ServerTls(*server, authority.ca)) as serving:
        assert read(serving, "/healthz", tls=known)[0] == 200
        assert read(serving, "/status", tls=known)[0] == 401
        with pytest.raises(OSError, match=r"(?i)certificate|reset|closed|EOF|pipe"):
            read(serving, "/healthz", tls=trusting)


def test_a_certificate_that_is_written_anew_is_shown_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http, "RENEWAL_SECONDS", 0)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    files = old.client("127.0.0.1")
    trusting = ssl.create_default_context(cafile=new.ca)

    def is_shown() -> bool:
        try:
            return read(serving, "/healthz", tls=trusting)[0] == 200
        except URLError:
            return False

    with served(lambda: WELL, tls=ServerTls(*files)) as serving:
        assert not is_shown()
        for file, content in zip(files, new.client("127.0.0.1"), strict=True):
            Path(file).write_bytes(Path(content).read_bytes())
        wait_until(is_shown)
        caplog.clear()
        Path(files[0]).write_text("torn")
        wait_until(lambda: "the certificate shown before goes on" in caplog.text)
        assert is_shown()


def test_probes_get_one_word_and_with_the_token_the_reasons(tokens: Tokens) -> None:
    look = of_one(
        CAPTURES,
        (of_target("failed", "No answer from hms.secret.corp."),),
        silent=("dr",),
    )
    whole = f"Bearer {TOKEN}".encode().decode("latin-1")
    with served(lambda: look, tokens=tokens) as serving:
        for page in ("/healthz", "/readyz"):
            for given in ("", f"Bearer {METRICS_TOKEN}", "Bearer x"):
                assert read(serving, page, given) == (503, "failing\n")
            assert "dr does not turn" in json.loads(read(serving, page, whole)[1])["problems"]
        assert "hms.secret.corp" in read(serving, "/readyz", whole)[1]
    with served(lambda: look) as serving:
        assert read(serving, "/readyz") == (503, "failing\n")


def asked_as(serving: Serving, path: str, host: str, authorization: str = "") -> int:
    fields = {"Host": host, **({"Authorization": authorization} if authorization else {})}
    try:
        with urlopen(Request(serving.address + path, headers=fields), timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_without_a_token_only_this_hosts_own_names_are_answered_and_with_one_any(tokens: Tokens) -> None:
    console = SILENT
    evil, whole = "calque.evil.example:9400", f"Bearer {TOKEN}".encode().decode("latin-1")
    guarded = ("/status", "/metrics", "/", "/assets/page.js", "/api/overview", "/nothing")
    with served(lambda: WELL, console=console) as serving:
        assert [asked_as(serving, path, evil) for path in guarded] == [421] * 6
        assert [asked_as(serving, path, "localhost:1") for path in guarded] == [200] * 5 + [404]
        assert [asked_as(serving, path, evil) for path in ("/healthz", "/readyz")] == [200, 200]
    with served(lambda: WELL, tokens=tokens, console=console) as serving:
        assert [asked_as(serving, path, evil, whole) for path in guarded] == [200] * 5 + [404]
        assert [asked_as(serving, path, evil) for path in guarded] == [401, 401, 401, 200, 401, 401]
    with served(lambda: WELL, tokens=Tokens(metrics=tokens.metrics), console=console) as serving:
        assert asked_as(serving, "/metrics", evil, f"Bearer {METRICS_TOKEN}") == 200
        assert asked_as(serving, "/status", evil) == 421


HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = HALF + b"\r\n"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("secure", [False, True])
def test_however_many_connect_few_are_open_and_probes_get_in(tmp_path: Path, secure: bool) -> None:
    authority = Authority(tmp_path)
    tls = ServerTls(*authority.client("127.0.0.1")) if secure else None
    trusting = ssl.create_default_context(cafile=authority.ca) if secure else None
    with served(lambda: WELL, tls=tls) as serving, ExitStack() as clients:
        address, before = serving.listener.getsockname(), descriptors()
        for number in range(3 * MOST_OPEN):
            client = clients.enter_context(socket.create_connection(address, timeout=30))
            if not secure and number % 2:
                client.sendall(HALF)
        assert read(serving, "/healthz", tls=trusting) == (200, "ok\n")
        assert len(serving.listener.open) <= MOST_OPEN
        assert descriptors() - before <= 3 * MOST_OPEN + MOST_OPEN + ACCEPTED
        assert read(serving, "/status", tls=trusting)[0] == 200


def test_a_second_request_has_a_deadline_as_the_first_one_has() -> None:
    """Of clients that get an answer, and then send half a request each."""
    with served(lambda: WELL) as serving, ExitStack() as clients:
        address = serving.listener.getsockname()
        slow = [clients.enter_context(socket.create_connection(address, timeout=30)) for _ in range(MOST_OPEN)]
        for client in slow:
            client.sendall(WHOLE)
            answer = b""
            while not answer.endswith(b"ok\n"):
                answer += client.recv(4096)
            client.sendall(HALF)
        assert read(serving, "/healthz")[0] == 200
        for client in slow:
            client.settimeout(30)
            with suppress(ConnectionError):
                assert client.recv(1) == b""


def test_pages_that_take_long_leave_room_for_probes() -> None:
    enough, begun = threading.Event(), threading.Semaphore(0)

    def status() -> dict[str, object]:
        begun.release()
        enough.wait(60)
        return {}

    pages = Pages(lambda: WELL, Meters(lambda: WELL).text, status)
    serving = serve(ANY, pages, Access(NO_TOKENS, None))
    try:
        with ExitStack() as clients:
            address = serving.listener.getsockname()
            for _ in range(MOST_OPEN):
                client = clients.enter_context(socket.create_connection(address, timeout=30))
                client.sendall(WHOLE.replace(b"/healthz", b"/status"))
            assert begun.acquire(timeout=30)
            assert [read(serving, "/healthz")[0] for _ in range(3)] == [200] * 3
            wait_until(lambda: read(serving, "/metrics")[0] == 503)
            enough.set()
            wait_until(lambda: read(serving, "/metrics")[0] == 200)
    finally:
        enough.set()
        serving.end()


@dataclass
class Wait:
    """The wait for an event that comes with the look of that number; 0 stands for an event that never comes of
    itself."""

    comes: int
    looks: int = 0

    def look(self) -> Waited:
        self.looks += 1
        if not self.comes:
            raise Unavailable("dr does not show event 12", "An operator has paused it", "Let it go on")
        return Waited(has_reached=self.looks >= self.comes, position=10 + self.looks, is_mended=True)

    def late(self, waited: Waited, timeout: float) -> Unavailable:
        return Unavailable("dr does not show event 12", f"{waited.position} after {timeout:g} s", "Wait longer")


WAITS = "/wait?target=dr&event_id=12"


@pytest.mark.parametrize(
    ("comes", "path", "status", "said"),
    [
        (3, WAITS, 200, {"target": "dr", "event_id": 12, "position": 13}),
        (9, f"{WAITS}&timeout=0", 504, {"error": "dr does not show event 12. 11 after 0 s. Wait longer."}),
        (0, WAITS, 504, {"error": "dr does not show event 12. An operator has paused it. Let it go on."}),
        (1, "/wait?target=dr", 400, "event_id is missing"),
        (1, "/wait?target=dr&event_id=1.5", 400, 'event_id: "1.5" is no number from 0 on'),
        (1, f"{WAITS}&timeout=-1", 400, 'timeout: "-1" is no number from 0 on'),
        (1, f"{WAITS}&timeout=soon", 400, 'timeout: "soon" is no number from 0 on'),
        (1, "/wait?target=rd&event_id=12", 400, '"rd" is no target'),
    ],
)
def test_programs_wait_for_an_event_over_http(comes: int, path: str, status: int, said: object) -> None:
    def begin(target: str, event_id: int) -> EventWait:
        assert event_id == 12
        return no_target(target, event_id) if target != "dr" else Wait(comes)

    pages = Pages(lambda: WELL, Meters(lambda: WELL).text, dict, wait=begin)
    serving = serve(ANY, pages, Access(NO_TOKENS, None))
    try:
        code, text = read(serving, path)
    finally:
        serving.end()
    found = json.loads(text)
    assert code == status
    assert found == said if isinstance(said, dict) else str(said) in found["error"]


def test_clients_that_wait_leave_room_for_others() -> None:
    looked, enough = threading.Semaphore(0), threading.Event()

    class Long(Wait):
        def look(self) -> Waited:
            looked.release()
            return Waited(has_reached=enough.is_set(), position=1, is_mended=True)

    pages = Pages(lambda: WELL, Meters(lambda: WELL).text, dict, wait=lambda *_: Long(1))
    serving = serve(ANY, pages, Access(NO_TOKENS, None))
    codes: list[int] = []
    clients = [threading.Thread(target=lambda: codes.append(read(serving, WAITS)[0])) for _ in range(MOST_WAITS)]
    try:
        for client in clients:
            client.start()
        for _ in clients:
            assert looked.acquire(timeout=30)
        wait_until(lambda: read(serving, WAITS)[0] == 503)
        assert read(serving, "/status")[0] == 200
        enough.set()
        for client in clients:
            client.join(60)
    finally:
        enough.set()
        serving.end()
    assert codes == [200] * MOST_WAITS


def test_a_process_that_runs_has_all_descriptors_that_it_may_have() -> None:
    program = (
        "import resource\n"
        "from calque.streams.descriptors import raise_descriptor_limit\n"
        "hard = min(512, resource.getrlimit(resource.RLIMIT_NOFILE)[1])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\n"
        "raise_descriptor_limit()\n"
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_who_asks_for_nothing_or_for_nonsense_holds_nobody_up(capsys: pytest.CaptureFixture[str]) -> None:
    with served(lambda: WELL) as serving, ExitStack() as clients:
        address = serving.listener.getsockname()
        silent = [clients.enter_context(socket.create_connection(address, timeout=60)) for _ in range(3)]
        silent[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        silent[1].sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
        assert silent[1].recv(64).startswith(b"HTTP/1.1 400")
        assert read(serving, "/healthz")[0] == 200
        assert silent[2].recv(1) == b""
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('address = "0.0.0.0:9400"', "9: serve: 0.0.0.0:9400 is beyond this host, and no token is given. Whoever"),
        ('address = "[::]:9400"\nmetrics_token_env = "T"', "is beyond this host, and no token is given."),
        ('address = "pages.hq:9400"', "is beyond this host, and no token is given."),
        ('token = "x"', "10: serve.token is no key. A secret does not stand in this file. Write token_env or"),
        ('token_env = "T"\ntoken_file = "t"', "11: serve: token is given twice."),
        ('metrics_token_env = "UNSET"', "10: serve.metrics_token_env: the environment variable UNSET is not set."),
        ('tls = { certificate = "c.pem" }', "10: serve.tls: key is missing. A server shows a certificate, and needs"),
        ('tls = { ca = "c.pem" }', "10: serve.tls: certificate is missing."),
        ('tls = { certificate = "c.pem", key = "k.pem" }', "can't be used with the key"),
        ("tls = { verify = false }", "10: serve.tls.verify is no key."),
        ('reading = "all"', "10: serve.reading"),
        (
            'address = "0.0.0.0:9400"\ntoken_env = "T"\nreading = "open"',
            "0.0.0.0:9400 is beyond this host, and reading is open. Whoever reaches it could read the names of tables",
        ),
    ],
)
def test_what_serving_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, said: str) -> None:
    monkeypatch.setenv("T", TOKEN)
    (tmp_path / "t").write_text(TOKEN)
    with pytest.raises(Refused) as caught:
        APP.load(written(tmp_path, lines))
    assert said in str(caught.value)


def test_a_job_serves_elsewhere_under_the_same_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T", TOKEN)
    beyond = endpoint("0.0.0.0:9400")
    with pytest.raises(Refused, match="no token is given"):
        APP.load(written(tmp_path, "")).serve.at(beyond)
    with pytest.raises(Refused, match="reading is open"):
        APP.load(written(tmp_path, 'token_env = "T"\nreading = "open"')).serve.at(beyond)
    serve_settings = APP.load(written(tmp_path, 'token_env = "T"')).serve.at(beyond)
    assert (serve_settings.address, serve_settings.token(), serve_settings.is_default()) == (
        beyond,
        VariableSecret("T"),
        False,
    )


def test_check_warns_of_tokens_that_travel_in_the_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T", TOKEN)
    findings = Findings()
    look_at_endpoint(APP.wiring(APP.load(written(tmp_path, 'address = "0.0.0.0:0"\ntoken_env = "T"'))), findings)
    [finding] = findings.entries
    assert (finding.severity, finding.what) == (Severity.WARNING, "Tokens go to 0.0.0.0:0 in the clear")


def written(folder: Path, lines: str) -> Path:
    """A configuration whose [serve] has the lines, from line 10 on."""
    path = folder / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://h:1"\n\n'
        '[targets.dr]\nmetastore = "thrift://h:2"\nwarehouse = "dr"\n\n'
        f"[serve]\n{lines}\n"
    )
    return path


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
        ("[serve]\ntls = {}\n", None, True),
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
    found = APP.load(path).serve
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


def test_the_newest_event_that_was_seen_before_a_time_is_known() -> None:
    heads = HeadTimes()
    assert heads.newest_before(100.0) is None
    for head, at in ((3, 10.0), (7, 20.0), (9, 30.0)):
        heads.note_head(head, at)
    assert [heads.newest_before(at) for at in (10.0, 10.5, 20.0, 30.0, 31.0)] == [None, 3, 3, 7, 9]


def test_a_target_that_gets_nearer_tells_its_speed_and_when_it_has_caught_up() -> None:
    rates = PositionRates()
    rates.note(PositionSample(100.0, 1_000, 1_900))
    assert (rates.events_per_second(), rates.catches_up_at()) == (None, None)
    rates.note(PositionSample(130.0, 1_600, 2_200))
    assert rates.events_per_second() == 20
    assert rates.catches_up_at() == 130 + 600 / 10
    rates.note(PositionSample(131.0, 2_200, 2_200))
    assert rates.catches_up_at() is None


@pytest.mark.parametrize("heads", [(10, 10), (10, 40)])
def test_a_target_that_gets_no_nearer_does_not_say_when_it_catches_up(heads: tuple[int, int]) -> None:
    rates = PositionRates()
    rates.note(PositionSample(0.0, 0, heads[0]))
    rates.note(PositionSample(10.0, 0, heads[1]))
    assert (rates.events_per_second(), rates.catches_up_at()) == (0, None)


def test_a_position_that_goes_back_begins_another_measurement() -> None:
    rates = PositionRates()
    for at, position in ((0.0, 900), (10.0, 1_000), (20.0, 5), (30.0, 15)):
        rates.note(PositionSample(at, position, 1_000))
    assert rates.events_per_second() == 1


def test_of_tables_that_lag_the_farthest_behind_are_told_and_few_of_them() -> None:
    heads = HeadTimes()
    assert table_lags([(3, TableName("a", "b"))], heads, 9.0) == ()
    for head in range(100):
        heads.note_head(head, float(head))
    shown = [(event, TableName("a", f"t{event}")) for event in range(99, 0, -1)]
    lags = table_lags(shown, heads, 200.0)
    assert lags[:2] == (TableLag("a.t1", 1, 98, 198.0), TableLag("a.t2", 2, 97, 197.0))
    assert len(lags) == MOST_TABLES
    assert table_lags(shown[:3], heads, 200.0) == (TableLag("a.t97", 97, 2, 102.0), TableLag("a.t98", 98, 1, 101.0))


def test_tables_that_are_not_live_are_behind_by_what_they_show() -> None:
    rows = [TableRow("a", name, state, shows) for name, state, shows in STATES_SHOWN]
    tables = TableStates()
    tables.load(rows, 10)
    assert sorted(told_states.behind(tables, 10)) == [(4, TableName("a", "quarantined")), (5, TableName("a", "waits"))]


STATES_SHOWN = (
    ("live", TableState.LIVE, 3),
    ("quarantined", TableState.QUARANTINED, 4),
    ("waits", TableState.WAITING, 5),
    ("waits for its first files", TableState.WAITING, None),
    ("new", TableState.UNKNOWN, None),
    ("read", TableState.STAGING, 12),
)


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

    probe = LivenessProbe(ask, "x")
    probe.check()
    assert (probe.answer, probe.problem) == (7, None)
    server.close()
    probe.check()
    assert probe.problem is not None
    assert "Nobody answers" in probe.problem


def configured(folder: Path, port: int) -> Wiring:
    path = folder / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        f'[serve]\naddress = "127.0.0.1:{port}"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    )
    return APP.wiring(APP.load(path))


def test_check_finds_an_address_that_another_has_and_none_that_a_process_of_ours_serves(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wiring, findings = configured(tmp_path, listener.getsockname()[1]), Findings()
        look_at_endpoint(wiring, findings)
        [finding] = findings.entries
        assert f"can't be served at 127.0.0.1:{listener.getsockname()[1]}" in finding.what
        assert (finding.where, findings.unreachable) == ("configuration", True)
        presence, findings = ProcessPresence(wiring.control, wiring.state), Findings()
        presence.serves = f"http://127.0.0.1:{listener.getsockname()[1]}"
        presence.begin(())
        try:
            look_at_endpoint(wiring, findings)
        finally:
            presence.end()
        assert findings.entries == []
    look_at_endpoint(wiring, findings)
    assert findings.entries == []


def test_several_sources_are_told_apart() -> None:
    behind = CaptureSample(state="running", problem="No answer.", reachable=False, head=5, last=4)
    lake = SourceSample(name="lake", capture=behind, gaps=2)
    look = ProcessSample(sources=(SourceSample(name="hq", capture=CAPTURES), lake), targets=(RUNS,))
    assert hindrances(look) == ["capture of lake: No answer."]
    text = Meters(lambda: look).text()[0].decode()
    for line in (
        'calque_source_head_event_id{source="hq"} 12.0',
        'calque_source_head_event_id{source="lake"} 5.0',
        'calque_gaps{source="lake"} 2.0',
        'calque_capture_failing{source="lake"} 1.0',
    ):
        assert line in text


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e999", "x", "9" * 5_000])
@pytest.mark.parametrize("key", ["offset", "limit"])
def test_what_is_no_number_in_a_query_is_refused_and_asked_of_nobody(key: str, value: str) -> None:
    asked: list[object] = []

    def tables(query: TableQuery) -> Json:
        asked.append(query)
        return {}

    console = replace(SILENT, tables=tables)
    with served(lambda: WELL, console=console) as serving:
        status, content = read(serving, f"/api/tables?{key}={value}")
        assert (status, "is no number" in content, asked) == (400, True, [])
        assert read(serving, f"/api/tables?{key}=1e300")[0] == 200
