"""pyiceberg's catalogs, restricted so that their answers stay data. calque imports no class because a server, a table
or one of the library's files names it, and sends no request to another server than the link's.

The library by itself takes all properties that a catalog's configuration, a table, or its own environment has, and
makes objects of the classes that these name. Here a server sets only the properties in `FROM_SERVER`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.auth import AuthManagerAdapter
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.serializers import FromInputFile
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

from calque.errors import AccessRefused
from calque.plugins.remotes.adapters.catalogs.bounded_body import BoundedBody
from calque.plugins.remotes.adapters.catalogs.near import far_pools

FROM_SERVER = frozenset({"uri", "prefix", "namespace-separator", "view-endpoints-supported", "rest-page-size"})
"""The properties that a server may set."""
CONNECT_SECONDS, READ_SECONDS = 5.0, 60.0
DEFAULT_PORTS = {"http": 80, "https": 443}


class FarRestCatalog(RestCatalog):
    """A catalog over REST. With `far_only` it connects to no address that is near calque itself, and through no
    proxy."""

    def __init__(self, name: str, *, far_only: bool, **properties: str) -> None:
        self._far_only = far_only
        super().__init__(name, **properties)

    def _create_session(self) -> Session:
        session = OneServerSession(self.uri, far_only=self._far_only)
        self._config_headers(session)
        self._auth_manager = self._create_legacy_oauth2_auth_manager(session)
        session.auth = AuthManagerAdapter(self._auth_manager)
        return session

    def _fetch_config(self) -> None:
        own = dict(self.properties)
        super()._fetch_config()
        said = {key: value for key, value in self.properties.items() if key in FROM_SERVER and isinstance(value, str)}
        require_same_server(own["uri"], said["uri"])
        self.properties = {**own, **said}

    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:  # noqa: ARG002
        """Return a reader that reads no files, because the catalog must not choose how files are read."""
        return NoFiles()


class OwnFilesSqlCatalog(SqlCatalog):
    """A catalog in a SQL database. Properties of its tables do not change how their files are read."""

    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:  # noqa: ARG002
        return load_file_io({}, location)


def metadata_at(location: str) -> Any:
    """Return the content of the metadata file at `location`, as pyiceberg's table metadata."""
    return FromInputFile.table_metadata(load_file_io({}, location).new_input(location))


class NoFiles(FileIO):
    """A `FileIO` that refuses every file, for catalogs that send the metadata in their answers."""

    def new_input(self, location: str) -> Any:
        raise OSError(f"{location} is not read")

    def new_output(self, location: str) -> Any:
        raise OSError(f"{location} is not written")

    def delete(self, location: Any) -> None:
        raise OSError(f"{location} is not removed")


class OneServerSession(Session):
    """A session of HTTP requests to the server of one address. A request to another server raises `AccessRefused`
    before anything is sent there, because headers, and bodies too, carry logins."""

    def __init__(self, uri: str, *, far_only: bool) -> None:
        super().__init__()
        self._uri = uri
        adapter = PatientAdapter()
        if far_only:
            adapter.poolmanager.pool_classes_by_scheme = far_pools(HTTPConnectionPool, HTTPSConnectionPool)
            self.trust_env = False
            self.verify = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def send(self, request: PreparedRequest, **options: Any) -> Response:
        require_same_server(self._uri, urljoin(self._uri, request.url or ""))
        return super().send(request, **options)


class PatientAdapter(HTTPAdapter):
    """An HTTP adapter with bounds: `CONNECT_SECONDS` and `READ_SECONDS` for a server that does not answer, and
    `BoundedBody` for an answer without an end."""

    def send(self, request: PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        response = super().send(request, **{**options, "timeout": (CONNECT_SECONDS, READ_SECONDS)})
        response.raw = BoundedBody(response.raw)
        return response


def require_same_server(own: str, address: str) -> None:
    """Raise `AccessRefused` where `address` is not on the host and port of `own`. The step from http to https on one
    host, from port 80 to 443, is no other server."""
    here, there = urlsplit(own), urlsplit(address)
    places = [(one.hostname, one.port or DEFAULT_PORTS.get(one.scheme)) for one in (here, there)]
    is_upgrade = (here.scheme, there.scheme) == ("http", "https") and places == [
        (here.hostname, 80),
        (here.hostname, 443),
    ]
    if (here.scheme == there.scheme and places[0] == places[1]) or is_upgrade:
        return
    what = f"{here.scheme}://{here.netloc} leads to another server, {there.scheme}://{there.netloc.rpartition('@')[2]}"
    todo = "Make the link to that address, if it is to be trusted"
    raise AccessRefused(what, "A link is connected to its own address alone, and logins go nowhere else", todo)
