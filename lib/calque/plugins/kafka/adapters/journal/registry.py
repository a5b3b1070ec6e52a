"""The schema registry at which other programs find the schema of events. It speaks Confluent's protocol.

Confluent's own client asks it. calque itself needs no registry to read a journal.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import shorten

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from calque.errors import CalqueError, Refused, Unavailable
from calque.model.secrets import Options, revealed
from calque.plugins.kafka.adapters.client.errors import PATIENCE
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.codec import newest_text

NAME = "journal-event"
"""The name of the schema of events."""
NOT_FOUND = frozenset({40401, 40402, 40403})
"""The protocol's codes for a subject, a version and a schema that are not there."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The Avro schema `text` under `subject` at the registry at `url`, which is one address or several that are tried
    in turn. All methods raise `Unavailable` and `Refused`."""

    url: str
    options: Options
    subject: str
    text: str

    def registered_id(self) -> int | None:
        """Return the schema's id; None where it is not registered under the subject."""
        with self._client() as client:
            try:
                return client.lookup_schema(self.subject, self._schema).schema_id
            except SchemaRegistryError as error:
                if error.error_code in NOT_FOUND:
                    return None
                raise

    def register(self) -> int:
        """Return the schema's id. The schema is registered only where it is missing, so a user who may only look is
        enough afterwards."""
        schema_id = self.registered_id()
        if schema_id is not None:
            return schema_id
        with self._client() as client:
            return client.register_schema(self.subject, self._schema)

    def accepts(self) -> bool:
        """Tell whether the schema can follow the newest one under the subject, or would be the first there."""
        with self._client() as client:
            try:
                return client.test_compatibility(self.subject, self._schema)
            except SchemaRegistryError as error:
                if error.error_code in NOT_FOUND:
                    return True
                raise

    @property
    def _schema(self) -> Schema:
        return Schema(self.text, "AVRO")

    @contextmanager
    def _client(self) -> Iterator[SchemaRegistryClient]:
        """Yield a client for a few calls, with the values that secrets have now. Its errors become calque's."""
        settings = client_settings(self.url, self.options)
        try:
            with SchemaRegistryClient(settings) as client:
                yield client
        except SchemaRegistryError as error:
            raise self._fault(error.http_status_code, short(str(error.error_message))) from error
        except httpx2.TransportError as error:
            raise self._connection_fault(error) from error
        except (OSError, httpx2.HTTPError, ValueError, KeyError) as error:
            why = short(str(error) or type(error).__name__)
            todo = "Check the files that [journal] registry_options names, and that a registry answers there"
            raise Refused(f"The schema registry at {self.url} can't be used", why, todo) from error

    def _connection_fault(self, error: httpx2.TransportError) -> CalqueError:
        if is_about_certificate(error):
            todo = 'Write the address as its certificate has it, and "ssl.ca.location" in [journal] registry_options'
            return Refused(
                f"The certificate of the schema registry at {self.url} is not taken", short(str(error)), todo
            )
        return Unavailable(
            f"The schema registry at {self.url} does not answer",
            short(str(error) or type(error).__name__),
            "Check that it runs and [journal] registry names it; it is tried again",
        )

    def _fault(self, status: int, message: str) -> CalqueError:
        match status:
            case 401 | 403:
                todo = "Check [journal] registry_options, and what the user may do there"
                return Refused(f"The schema registry at {self.url} denies access to {self.subject}", message, todo)
            case 404:
                todo = "Write the root of its API, e.g. http://host:8081, or http://host:8080/apis/ccompat/v7"
                return Refused(f"No schema registry answers at {self.url}", message, todo)
            case 409 | 422:
                return Refused(
                    f"The schema registry at {self.url} does not take the schema of events under {self.subject}",
                    message,
                    "Compare with what stands there; remove that if nobody needs it, or name another topic",
                )
        return Unavailable(
            f"The schema registry at {self.url} does not answer as it should",
            f"{status}: {message}",
            "See its log; it is tried again",
        )


def registry_of(topic: Topic) -> Registry:
    """Return the registry that the journal names, with the schema of its events under the subject that Confluent's
    serializers use."""
    return Registry(topic.registry, topic.registry_options, f"{topic.name}-value", newest_text(NAME))


def client_settings(url: str, options: Options) -> dict[str, str | float]:
    """Return the settings of Confluent's client. It does not retry, because its caller does."""
    named: dict[str, str | float] = {"url": url, "timeout": PATIENCE, "max.retries": 0, **revealed(options)}
    if "user" in named:
        named["basic.auth.user.info"] = f"{named.pop('user')}:{named.pop('password')}"
    if "token" in named:
        named["bearer.auth.credentials.source"] = "STATIC_TOKEN"
        named["bearer.auth.token"] = named.pop("token")
        named.setdefault("bearer.auth.logical.cluster", "")
    return named


def is_about_certificate(error: BaseException | None) -> bool:
    """Tell whether a certificate that can't be verified is among the error's causes."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def short(text: str) -> str:
    """Return the text on one line, cut to 300 characters."""
    return shorten(text, 300, placeholder=" …")
