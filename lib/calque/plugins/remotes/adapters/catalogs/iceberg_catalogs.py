"""pyiceberg's catalogs, made so that what they answer stays data: no class is imported because a server, a table, or a
file of the library's names it, and nothing is asked of another server than the link's.

The library takes whatever properties a catalog's configuration, a table, or its own environment has, and makes objects
of the classes that these name. Here a server says only what stands in `FROM_SERVER`.
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
"""What a server may say of itself."""
CONNECT_SECONDS, READ_SECONDS = 5.0, 60.0
DEFAULT_PORTS = {"http": 80, "https": 443}


class FarRestCatalog(RestCatalog):
    """A catalog over REST. With `far_only` it connects to nothing near calque itself, and through no proxy."""

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
        """No file is read by what the catalog says of storages."""
        return NoFiles()


class OwnFilesSqlCatalog(SqlCatalog):
    """A catalog in a SQL database. Tables' own properties say nothing of how their files are read."""

    def _load_file_io(self, properties: Mapping[str, Any] = {}, location: str | None = None) -> FileIO:  # noqa: ARG002
        return load_file_io({}, location)


def metadata_at(location: str) -> Any:
    """What the metadata file says."""
    return FromInputFile.table_metadata(load_file_io({}, location).new_input(location))


class NoFiles(FileIO):
    """Of catalogs that send what is asked for."""

    def new_input(self, location: str) -> Any:
        raise OSError(f"{location} is not read")

    def new_output(self, location: str) -> Any:
        raise OSError(f"{location} is not written")

    def delete(self, location: Any) -> None:
        raise OSError(f"{location} is not removed")


class OneServerSession(Session):
    """Requests to the server of one address. Raises `AccessRefused` for any other, before anything is sent there:
    logins are in headers, and in bodies too."""

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
    """A server that does not answer is not waited for without an end, nor one that answers without an end read."""

    def send(self, request: PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        response = super().send(request, **{**options, "timeout": (CONNECT_SECONDS, READ_SECONDS)})
        response.raw = BoundedBody(response.raw)
        return response


def require_same_server(own: str, address: str) -> None:
    """The same host and port; from http to https of one host is no other server."""
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
