"""A catalog of Iceberg over HTTP that answers what a test says, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import IntegerType, NestedField


@dataclass
class HostileRest:
    """One namespace, `shop`, with one table, `orders`.

    defaults, overrides: what /v1/config answers. properties: of the table. config: what comes with the table. moved:
    where a path leads instead, by path. body: of each answer, in the content encoding, where
    there is one. asked: (path, headers) of each request.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    encoding: str = ""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def __enter__(self) -> HostileRest:
        rest = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = urlsplit(self.path).path
                rest.asked.append((path, dict(self.headers)))
                if path in rest.moved:
                    self.send_response(307)
                    self.send_header("Location", rest.moved[path])
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                answer = rest.answer(path)
                body = json.dumps(answer if answer is not None else {"error": {"message": path}}).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Type", "application/json")
                body = rest.body or body
                if rest.encoding:
                    self.send_header("Content-Encoding", rest.encoding)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the library's name

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=lambda: self._server.serve_forever(0.02), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def answer(self, path: str) -> Any:
        match path.split("/")[2:]:
            case ["config"]:
                return {"defaults": self.defaults, "overrides": self.overrides}
            case [*_, "oauth", "tokens"]:
                return {"access_token": "given", "token_type": "bearer"}
            case [*_, "namespaces"]:
                return {"namespaces": [["shop"]]}
            case [*_, "namespaces", "shop"]:
                return {"namespace": ["shop"], "properties": {}}
            case [*_, "tables"]:
                return {"identifiers": [{"namespace": ["shop"], "name": "orders"}]}
            case [*_, "tables", "orders"]:
                return {
                    "metadata-location": "file:///lake/orders/metadata/00000-a.metadata.json",
                    "metadata": metadata_with(self.properties),
                    "config": self.config,
                }
        return None


def metadata_with(properties: Mapping[str, str]) -> Any:
    schema = Schema(NestedField(1, "x", IntegerType()))
    metadata = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "file:///lake/orders", dict(properties)
    )
    return json.loads(metadata.model_dump_json())
