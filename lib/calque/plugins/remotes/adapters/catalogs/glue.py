"""The client `glue` of remote tables: its settings, and the catalog that it connects to.

Where the link says nothing, the AWS SDK finds region and credentials in its own ways: in the environment, in its files,
or by the machine's role.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from calque.core.events.log_messages import key_names
from calque.errors import AccessRefused, CalqueError, Refused, Unavailable
from calque.model.hive import Database, Partition, Table
from calque.model.names import TableName, partition_name
from calque.plugins.remotes.adapters.catalogs.glue_definitions import database_of, partition_of, table_of
from calque.plugins.remotes.adapters.catalogs.near import aws_session, require_far
from calque.plugins.remotes.core.definitions import CREDENTIALS
from calque.plugins.remotes.model import ClientForm
from calque.plugins.remotes.ports import RemoteAccess

ENDPOINT, REGION, CATALOG_ID = "aws.glue.endpoint", "aws.region", "hive.metastore.glue.catalogid"
FORM = ClientForm(
    "glue",
    frozenset({"AWSGlueDataCatalogHiveClientFactory"}),
    frozenset({ENDPOINT, REGION, CATALOG_ID, CREDENTIALS}),
    frozenset(),
    ENDPOINT,
    own_login=True,
)
CONNECT_SECONDS, READ_SECONDS, TRIES = 5, 30, 3
MISSING = "EntityNotFoundException"
REFUSING = frozenset(
    {
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "ExpiredTokenException",
        "MissingAuthenticationTokenException",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "AccessDenied",
    }
)


@dataclass(frozen=True, slots=True)
class GlueClient:
    """The client of AWS Glue, as `plugins.remotes.ports.RemoteClient`."""

    @property
    def form(self) -> ClientForm:
        return FORM

    def require(self, settings: Mapping[str, str]) -> None:
        endpoint = settings.get(ENDPOINT, "")
        parts = urlsplit(endpoint)
        if endpoint and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            todo = "Write e.g. https://host:443, or leave it out"
            raise Refused(f"'{ENDPOINT}' = '{endpoint}' is no address", "One begins with https:// or http://", todo)

    def connect(self, settings: Mapping[str, str], access: RemoteAccess) -> GlueCatalog:
        return GlueCatalog(settings, access)


GLUE = GlueClient()


@dataclass(slots=True)
class GlueCatalog:
    """The catalog of one AWS account in one region, as `plugins.remotes.ports.RemoteCatalog`."""

    settings: Mapping[str, str]
    access: RemoteAccess
    _client: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def identity(self) -> str:
        return ""

    def databases(self) -> Sequence[str]:
        return sorted(one["Name"].lower() for one in self._pages("get_databases", "DatabaseList"))

    def database(self, name: str) -> Database | None:
        found = self._call("get_database", Name=name)
        return database_of(found["Database"]) if found is not None else None

    def versions(self, database: str) -> Mapping[str, str]:
        tables = self._pages("get_tables", "TableList", DatabaseName=database)
        return {one["Name"].lower(): version_of(one) for one in tables}

    def table(self, name: TableName) -> Table | None:
        found = self._call("get_table", DatabaseName=name.database, Name=name.table)
        return table_of(found["Table"], name.database) if found is not None else None

    def partitions(self, table: Table) -> Mapping[str, Partition]:
        pages = self._pages("get_partitions", "Partitions", DatabaseName=table.database, TableName=table.name)
        partitions = [partition_of(one, table) for one in pages]
        keys = key_names(table)
        return {partition_name(keys, one.values): one for one in partitions if len(one.values) == len(keys)}

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _pages(self, operation: str, key: str, **given: str) -> Iterator[Mapping[str, Any]]:
        """Return the entries under `key` of all pages that the operation answers; none where the object that the
        operation asks for is missing."""
        token: dict[str, str] = {}
        while True:
            page = self._call(operation, **given, **token)
            if page is None:
                return
            yield from page[key]
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _call(self, operation: str, **given: str) -> Mapping[str, Any] | None:
        """Return the answer of the operation, or None where the object that it asks for is missing."""
        from botocore.exceptions import ClientError

        if catalog := self.settings.get(CATALOG_ID):
            given["CatalogId"] = catalog
        with self._own_errors():
            try:
                answer: Mapping[str, Any] = getattr(self._connected(), operation)(**given)
            except ClientError as error:
                if error.response["Error"]["Code"] == MISSING:
                    return None
                raise
        return answer

    def _connected(self) -> Any:
        """Return the SDK's client, which the first call makes. Several threads may use it at once."""
        from botocore.config import Config
        from botocore.session import Session
        from botocore.utils import get_environ_proxies

        timeouts = (CONNECT_SECONDS, READ_SECONDS)
        with self._lock:
            if self._client is None:
                access = self.access
                endpoint, user = self.settings.get(ENDPOINT), access.user or None
                if endpoint and access.far_only:
                    require_far(endpoint)
                session = Session()
                self._client = session.create_client(
                    "glue",
                    region_name=self.settings.get(REGION),
                    endpoint_url=endpoint,
                    aws_access_key_id=user,
                    aws_secret_access_key=access.password.read() if access.password is not None else None,
                    aws_session_token=access.token.read() if access.token is not None else None,
                    config=Config(
                        connect_timeout=CONNECT_SECONDS,
                        read_timeout=READ_SECONDS,
                        retries={"total_max_attempts": TRIES, "mode": "standard"},
                    ),
                )
                sender = aws_session(
                    far_only=access.far_only,
                    verify=session.get_config_variable("ca_bundle") or True,
                    timeout=timeouts,
                    # What is far is asked through no proxy, which could lead near.
                    proxies={} if access.far_only else get_environ_proxies(self._client.meta.endpoint_url),
                )
                self._client.meta.events.register("before-send.glue", lambda request, **_: sender.send(request))
            return self._client

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Turn the SDK's errors that the block raises into errors of calque."""
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

        where = self.settings.get(ENDPOINT) or f"AWS Glue in {self.settings.get(REGION) or 'the default region'}"
        try:
            yield
        except NoRegionError as error:
            todo = f"Write '{REGION}' among the link's properties, or set AWS_DEFAULT_REGION for calque"
            raise Refused("No region is known", "Glue has one catalog in each", todo) from error
        except NoCredentialsError as error:
            todo = f"Set them as for any AWS tool, or name [remotes.credentials.NAME] by '{CREDENTIALS}'"
            raise AccessRefused("There are no credentials for AWS Glue", str(error), todo) from error
        except ClientError as error:
            code, words = error.response["Error"]["Code"], str(error.response["Error"].get("Message", ""))
            if code in REFUSING:
                todo = "Look at the credentials, and at what they may do"
                raise AccessRefused(f"{where} refuses calque", f"{code}: {words}", todo) from error
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status >= 500 or "Throttl" in code or "LimitExceeded" in code:
                raise Unavailable(f"{where} does not answer", f"{code}: {words}", "It is tried again") from error
            raise Refused(f"{where} refused what was asked", f"{code}: {words}", "See the message") from error
        except BotoCoreError as error:
            if isinstance(refused := error.kwargs.get("error"), CalqueError):
                raise refused from error
            raise Unavailable(f"{where} does not answer", str(error), "It is tried again") from error
        except (ValueError, RecursionError) as error:
            raise Refused(f"{where} can't be read", str(error), "Look what answers there") from error


def version_of(table: Mapping[str, Any]) -> str:
    """Return the table's version and time of change as one text; empty where Glue says neither."""
    return " ".join(str(table[key]) for key in ("VersionId", "UpdateTime") if table.get(key))
