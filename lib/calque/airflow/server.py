"""A running process of calque as tasks of Airflow ask it, over HTTP."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from calque.airflow.questions import Answer, AnswerState, Question, answer_of
from calque.errors import Refused

PORT = 9400
"""The port of the pages where the configuration of calque does not name one."""
ANSWER_SECONDS = 30.0
"""Seconds for which an answer is waited for."""


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a process, the token that reading its pages needs, empty for none, and paths of PEM files: the
    authority that vouches for the server, empty for those of the system, and the client's own certificate."""

    address: str
    token: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext | None:
        """Return the context of TLS; None for plain HTTP. Raises `Refused` where a file can't be used."""
        if not self.address.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except OSError as error:
            why = f"A file of ca, certificate or key can't be used: {error}"
            raise Refused(f"No connection to {self.address}", why, "Correct the connection's extra") from None
        return context

    def url(self, question: Question) -> str:
        parameters = urlencode(question.parameters())
        return f"{self.address}{question.path}{'?' if parameters else ''}{parameters}"

    def headers(self) -> dict[str, str]:
        # A header is Latin-1, and calque compares what its bytes mean in UTF-8.
        return {"Authorization": f"Bearer {self.token}".encode().decode("latin-1")} if self.token else {}

    def ask(self, question: Question) -> Answer:
        """Return the answer. A process that does not answer, as one that starts anew, is a `NOT_YET`."""
        request = Request(self.url(question), headers=self.headers())
        try:
            with urlopen(request, timeout=ANSWER_SECONDS, context=self.context()) as response:
                return answer_of(response.status, document_of(response.read()))
        except HTTPError as error:
            with error:
                return answer_of(error.code, document_of(error.read()))
        except URLError as error:
            return self.unanswered(error.reason)
        except (OSError, HTTPException) as error:
            return self.unanswered(error)

    async def ask_by(self, client: AsyncClient, question: Question, failure: type[Exception]) -> Answer:
        """Return the answer through a client that holds no thread. `failure` is what the client raises where no answer
        comes."""
        headers = {name: value.encode("latin-1") for name, value in self.headers().items()}
        try:
            response = await client.get(self.url(question), headers=headers, timeout=ANSWER_SECONDS)
        except failure as error:
            return self.unanswered(error)
        return answer_of(response.status_code, document_of(response.content))

    def unanswered(self, error: object) -> Answer:
        """Return the answer that no answer is. A server that proves not to be the right one is refused."""
        is_foreign = "CERTIFICATE_VERIFY_FAILED" in str(error)
        state = AnswerState.REFUSED if is_foreign else AnswerState.NOT_YET
        return Answer(state, f"{self.address} does not answer: {error}", {})


class AsyncResponse(Protocol):
    @property
    def status_code(self) -> int: ...

    @property
    def content(self) -> bytes: ...


class AsyncClient(Protocol):
    """The part of `httpx.AsyncClient` that is needed here."""

    async def get(self, url: str, *, headers: Any, timeout: float) -> AsyncResponse: ...


def document_of(content: bytes) -> Mapping[str, Any]:
    """Return the object of JSON in an answer; an empty one for any other content, as a proxy's page."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
