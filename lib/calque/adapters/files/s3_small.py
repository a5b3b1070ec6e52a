"""Small objects of an S3 store, written and read whole, by obstore: its requests take a tenth of the processor time of
s3fs's, which is what many small files cost. All else is `s3_requests`'s."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import botocore.session
import obstore
from fsspec.spec import AbstractFileSystem
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store
from s3fs.errors import translate_boto_error

SMALL = 256 << 10
"""Objects up to this size, in bytes: they are sent and answered within the time in which a store may be silent."""
CODE, MESSAGE = re.compile(r"<Code>(\w+)</Code>"), re.compile(r"<Message>([^<]*)</Message>")
STATUS = re.compile(r"status code: (\d{3})")
TOO_LATE = "timed out"
KEPT = timedelta(minutes=5)
"""For how long obstore holds keys that botocore gave."""


class SmallObjects:
    """`silent` is for how many seconds a request is waited for. Every method raises `OSError`, whose cause is
    `StoreAnswer` where the store gave one, and `StoreCut` where a connection ended."""

    def __init__(self, filesystem: AbstractFileSystem, silent: float) -> None:
        self._files, self._silent = filesystem, silent
        self._lock = threading.Lock()
        self._stores: dict[str, S3Store] = {}

    def takes(self, key: str, size: int) -> bool:
        """Whether it can write and read the object: obstore has no names with empty parts, or with control
        characters."""
        is_plain = key.isprintable() and not {"", ".", ".."}.intersection(key.split("/"))
        return is_plain and size <= SMALL and self._options is not None

    def put(self, bucket: str, key: str, content: bytes, *, new: bool) -> str:
        """Its ETag. With `new`, `FileExistsError` where there is one and the store knows conditions."""
        with as_answers():
            mode: Literal["create", "overwrite"] = "create" if new else "overwrite"
            answer = obstore.put(self._store(bucket), key, content, mode=mode, use_multipart=False)
        return str(answer["e_tag"] or "")

    def get(self, bucket: str, key: str) -> bytes:
        with as_answers():
            return bytes(obstore.get(self._store(bucket), key).bytes())

    def _store(self, bucket: str) -> S3Store:
        with self._lock:
            if bucket not in self._stores:
                options, time_limit = dict(self._options or {}), f"{self._silent:.0f}s"
                client = {"timeout": time_limit, "connect_timeout": time_limit, "allow_http": True}
                if bundle := os.environ.get("AWS_CA_BUNDLE"):
                    client["root_certificate"] = Path(bundle).read_text()
                retries = {"max_retries": 0}
                self._stores[bucket] = S3Store(bucket, client_options=client, retry_config=retries, **options)  # type: ignore[arg-type]
            return self._stores[bucket]

    @cached_property
    def _options(self) -> Mapping[str, Any] | None:
        """What obstore takes of s3fs's options; None where it can't do what they ask for."""
        files = self._files
        session = botocore.session.Session(profile=files.kwargs.get("profile"))
        region = files.client_kwargs.get("region_name") or session.get_config_variable("region")
        if files.s3_additional_kwargs or files.req_kw or not (region or files.endpoint_url):
            return None
        options = {"region": region or "us-east-1"}
        if files.endpoint_url:
            options["endpoint"] = files.endpoint_url
        if files.anon:
            return {**options, "skip_signature": True}
        if files.key and files.secret:
            keys = {"access_key_id": files.key, "secret_access_key": files.secret, "token": files.token}
            return {**options, **{name: key for name, key in keys.items() if key}}
        credentials = session.get_credentials()
        return {**options, "credential_provider": partial(keys_of, credentials)} if credentials is not None else None


def keys_of(credentials: Any) -> Mapping[str, object]:
    """Of an account of the machine or a profile: botocore has them anew when they end."""
    frozen = credentials.get_frozen_credentials()
    return {
        "access_key_id": frozen.access_key,
        "secret_access_key": frozen.secret_key,
        "token": frozen.token,
        "expires_at": datetime.now(UTC) + KEPT,
    }


class StoreCut(ConnectionError):
    """A connection ended before the answer came."""


class StoreAnswer(Exception):
    """A refusal of the store, as botocore's errors have it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.response = {"Error": {"Code": code, "Message": text}}


@contextmanager
def as_answers() -> Iterator[None]:
    """obstore's errors, of which a text is all there is, as those that s3fs makes."""
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        text = str(error)
        code, message = CODE.search(text) or STATUS.search(text), MESSAGE.search(text)
        if code is not None:
            answer = StoreAnswer(code[1], message[1] if message else text)
            raise translate_boto_error(answer) from answer
        if isinstance(error, AlreadyExistsError | PreconditionError):
            raise FileExistsError(errno.EEXIST, "There is an object already") from error
        lost = ConnectionError if TOO_LATE in text else StoreCut
        raise lost(text.partition("\n")[0]) from error
