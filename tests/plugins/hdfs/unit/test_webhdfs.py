"""Checksums by WebHDFS: which NameNodes are asked, and what their answers mean."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from calque.plugins.hdfs.adapters.hadoop_configuration import web_addresses
from calque.plugins.hdfs.adapters.webhdfs import WebHdfs

NAMED = {"dfs.ha.namenodes.hq": "one, two", "dfs.namenode.rpc-address.hq.two": "two:8020"}
SILENT = 10.0


class Asked:
    """What a NameNode was asked, and what it answers: a status and a body."""

    def __init__(self, status: int, body: object = None) -> None:
        self.status, self.body = status, body
        self.targets: list[str] = []


@contextmanager
def name_node(asked: Asked) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.targets.append(self.path)
            self.send_response(asked.status)
            self.end_headers()
            self.wfile.write(json.dumps(asked.body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def checksum(text: str, length: int) -> dict[str, object]:
    return {"FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": text, "length": length}}


def test_a_checksum_is_as_long_as_the_answer_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "hive")
    asked = Asked(200, checksum("00FF10000000", 3))
    with name_node(asked) as address:
        assert WebHdfs([address], SILENT).checksum("/w/a b#1/%41") == "00ff10"
    assert asked.targets == ["/webhdfs/v1/w/a%20b%231/%2541?op=GETFILECHECKSUM&user.name=hive"]


def test_one_name_node_in_stand_by_sends_to_the_other() -> None:
    standby, active = Asked(403), Asked(200, checksum("ab", 1))
    with name_node(standby) as first, name_node(active) as second:
        assert WebHdfs([first, second], SILENT).checksum("/f") == "ab"
    assert len(standby.targets) == len(active.targets) == 1


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (Asked(404), FileNotFoundError),
        (Asked(403), PermissionError),
        (Asked(401), PermissionError),
        (Asked(200, {}), ConnectionError),
        (Asked(200, [1]), ConnectionError),
    ],
    ids=["missing", "denied", "unknown user", "another answer", "no object"],
)
def test_what_is_not_told_is_an_error_of_its_kind(asked: Asked, kind: type[OSError]) -> None:
    with name_node(asked) as address, pytest.raises(kind):
        WebHdfs([address], SILENT).checksum("/f")


def test_who_did_not_answer_is_not_asked_again_for_a_while() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        web = WebHdfs([f"http://127.0.0.1:{bound.getsockname()[1]}"], SILENT)
        with pytest.raises(ConnectionError, match="refused"):
            web.checksum("/f")
        with pytest.raises(ConnectionError, match="a moment ago"):
            web.checksum("/f")


def test_a_missing_file_does_not_keep_others_from_being_asked_for() -> None:
    asked = Asked(404)
    with name_node(asked) as address:
        web = WebHdfs([address], SILENT)
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                web.checksum("/f")
    assert len(asked.targets) == 2


@pytest.mark.parametrize(
    ("address", "settings", "web"),
    [
        ("n:8020", {}, ["http://n:9870"]),
        ("n:8020", {"dfs.namenode.http-address": "0.0.0.0:50070"}, ["http://n:50070"]),
        ("n:8020", {"dfs.namenode.http-address": "m:1"}, ["http://m:1"]),
        ("n:8020", {"dfs.http.policy": "HTTPS_ONLY"}, ["https://n:9871"]),
        (
            "hq",
            {**NAMED, "dfs.namenode.http-address.hq.one": "one:1", "dfs.namenode.http-address": "other:2"},
            ["http://one:1", "http://two:9870"],
        ),
    ],
)
def test_name_nodes_speak_http_where_hadoop_s_configuration_says(
    address: str, settings: dict[str, str], web: list[str]
) -> None:
    assert web_addresses(address, settings) == web
