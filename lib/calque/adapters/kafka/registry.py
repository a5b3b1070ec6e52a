"""Where do other programs find the schema of events? At a registry that speaks Confluent's protocol, if one is named.

Three calls over the standard library's HTTP. Nothing here is needed to read.
"""

from __future__ import annotations

import base64
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from textwrap import shorten
from typing import Any
from urllib.error import HTTPError, URLError

import orjson

from calque.adapters.kafka.codec import newest_text
from calque.adapters.kafka.faults import PATIENCE
from calque.adapters.kafka.topic import Topic
from calque.errors import CalqueError, Refused, Unavailable

NAME = "journal-event"
"""The schema of events."""
CONTENT = "application/vnd.schemaregistry.v1+json"
NOT_FOUND = frozenset({40401, 40402, 40403})
"""The protocol's codes for a subject, a version and a schema that are not there."""


@dataclass(frozen=True, slots=True)
class Registry:
    """What the registry at `url` knows of the Avro schema `text` under `subject`. All methods raise `Unavailable` and
    `Refused`."""

    url: str
    options: Mapping[str, str]
    subject: str
    text: str

    def registered_id(self) -> int | None:
        """The schema's id; None where it is not registered under the subject."""
        answer = self._ask(f"/subjects/{self.subject}")
        return None if answer is None else int(answer["id"])

    def register(self) -> int:
        """The schema's id, registered only where it is missing: so a user who may only look will do."""
        schema_id = self.registered_id()
        if schema_id is not None:
            return schema_id
        answer = self._ask(f"/subjects/{self.subject}/versions")
        if answer is None:
            raise self._fault(404, "It knows no subjects")
        return int(answer["id"])

    def objection(self) -> str:
        """Why the schema can't follow the newest one under the subject; empty where it can, or is the first."""
        answer = self._ask(f"/compatibility/subjects/{self.subject}/versions/latest?verbose=true")
        if answer is None or answer.get("is_compatible"):
            return ""
        return short(str(answer.get("messages") or answer.get("reason") or "It says no more"))

    def _ask(self, path: str) -> Mapping[str, Any] | None:
        """The answer to the schema; None where something is not there."""
        headers = {"Content-Type": CONTENT, "Accept": CONTENT}
        if self.options:
            login = f"{self.options['user']}:{self.options['password']}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        request = urllib.request.Request(self.url + path, orjson.dumps({"schema": self.text}), headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                document: Mapping[str, Any] = orjson.loads(answer.read())
                return document
        except HTTPError as error:
            code, message = code_and_message(error)
            if code in NOT_FOUND:
                return None
            raise self._fault(error.code, message) from error
        except (OSError, HTTPException, ValueError) as error:
            raise Unavailable(
                f"The schema registry at {self.url} does not answer",
                short(str(error.reason if isinstance(error, URLError) else error) or type(error).__name__),
                "Check that it runs and [journal] registry names it; it is tried again",
            ) from error

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
    """The one that the journal names, with the schema of its events under the subject that serializers use."""
    return Registry(topic.registry, topic.registry_options, f"{topic.name}-value", newest_text(NAME))


def code_and_message(error: HTTPError) -> tuple[int, str]:
    """The protocol's own code (0 for none) and the message."""
    with error:
        body = error.read()
    try:
        answer = orjson.loads(body)
        return int(answer["error_code"]), short(str(answer["message"]))
    except (ValueError, KeyError, TypeError):
        return 0, short(str(error))


def short(text: str) -> str:
    """On one line, and no longer than can be read."""
    return shorten(text, 300, placeholder=" …")
