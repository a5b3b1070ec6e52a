"""Small objects of an S3 store, written and read whole by obstore. Its requests take a tenth of the processor time of
s3fs's, and many small files cost mostly processor time. All other requests are those of `requests`."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import botocore.session
import obstore
from botocore.credentials import Credentials
from fsspec.spec import AbstractFileSystem
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store
from s3fs.errors import translate_boto_error

T = TypeVar("T")
SMALL = 256 << 10
"""Bytes of the largest small object: it is sent and answered within the time in which a store may be silent."""
CODE, MESSAGE = re.compile(r"<Code>(\w+)</Code>"), re.compile(r"<Message>([^<]*)</Message>")
STATUS = re.compile(r"status code: (\d{3})")
TOO_LATE = "timed out"
ELSEWHERE = (
    "Received redirect",
    "<Code>AuthorizationHeaderMalformed<",
    "<Code>PermanentRedirect<",
    "<Code>TemporaryRedirect<",
    "<Code>IllegalLocationConstraintException<",
)
"""Texts in the answers for a bucket in another region."""
KEPT = timedelta(minutes=5)
"""The time for which obstore holds keys that botocore gave."""


class SmallObjects:
    """The small objects of one store. A request is waited for `silent` seconds. `put` and `get` raise `OSError`, whose
    cause is `StoreAnswer` where the store answered with an error, and `StoreCut` where a connection ended. They return
    None for a bucket that turns out to be in another region. Such a bucket is left to s3fs from then on, because
    botocore finds the region."""

    def __init__(self, filesystem: AbstractFileSystem, silent: float) -> None:
        self._files, self._silent = filesystem, silent
        self._lock = threading.Lock()
        self._stores: dict[str, S3Store] = {}
        self._elsewhere: set[str] = set()

    def takes(self, bucket: str, key: str, size: int) -> bool:
        """Tell whether obstore writes and reads an object of this name and size (bytes): at most `SMALL`, in a bucket
        of the client's own region, under a name without empty parts, `.`, `..` or control characters."""
        is_plain = key.isprintable() and not {"", ".", ".."}.intersection(key.split("/"))
        return is_plain and size <= SMALL and bucket not in self._elsewhere and self._options is not None

    def put(self, bucket: str, key: str, content: bytes, *, new: bool) -> str | None:
        """Write an object, and return its ETag; None for a bucket in another region. With `new`, raises
        `FileExistsError` where there is an object of the name, if the store knows conditions."""
        mode: Literal["create", "overwrite"] = "create" if new else "overwrite"
        answer = self._asked(bucket, lambda store: obstore.put(store, key, content, mode=mode, use_multipart=False))
        return None if answer is None else str(answer["e_tag"] or "")

    def get(self, bucket: str, key: str) -> bytes | None:
        return self._asked(bucket, lambda store: bytes(obstore.get(store, key).bytes()))

    def _asked(self, bucket: str, ask: Callable[[S3Store], T]) -> T | None:
        try:
            with as_answers():
                return ask(self._store(bucket))
        except BucketElsewhere:
            self._elsewhere.add(bucket)
            return None

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
        """Return s3fs's options in obstore's terms; None where obstore can't do what they ask for. botocore decides
        where the store is and which login is used, because obstore by itself would take some of these from the
        environment."""
        files = self._files
        if files.s3_additional_kwargs or files.req_kw:
            return None
        session = botocore.session.Session(profile=files.kwargs.get("profile"))
        place = {"region_name": files.client_kwargs.get("region_name"), "endpoint_url": files.endpoint_url}
        meta = session.create_client("s3", **place).meta
        options = {"region": meta.region_name, "endpoint": meta.endpoint_url, "virtual_hosted_style_request": False}
        if files.anon:
            return {**options, "skip_signature": True}
        keys = (files.key, files.secret, files.token) if files.key and files.secret else None
        credentials = Credentials(*keys) if keys else session.get_credentials()
        return {**options, "credential_provider": partial(keys_of, credentials)} if credentials is not None else None


def keys_of(credentials: Credentials) -> Mapping[str, object]:
    """Return the keys of the credentials as they are now. botocore renews those of a machine's account when they end,
    so obstore asks again after `KEPT`."""
    frozen = credentials.get_frozen_credentials()
    return {
        "access_key_id": frozen.access_key,
        "secret_access_key": frozen.secret_key,
        "token": frozen.token,
        "expires_at": datetime.now(UTC) + KEPT,
    }


class BucketElsewhere(Exception):
    """The error of a request to a store in another region than the bucket's."""


class StoreCut(ConnectionError):
    """The error of a connection that ended before the answer came."""


class StoreAnswer(Exception):
    """A refusal by the store, in the form of botocore's errors."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.response = {"Error": {"Code": code, "Message": text}}


@contextmanager
def as_answers() -> Iterator[None]:
    """Turn obstore's errors that the block raises, which have only a text, into the errors that s3fs raises."""
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        text = str(error)
        if any(sign in text for sign in ELSEWHERE):
            raise BucketElsewhere from error
        code, message = CODE.search(text) or STATUS.search(text), MESSAGE.search(text)
        if code is not None:
            answer = StoreAnswer(code[1], message[1] if message else text)
            raise translate_boto_error(answer) from answer
        if isinstance(error, AlreadyExistsError | PreconditionError):
            raise FileExistsError(errno.EEXIST, "There is an object already") from error
        lost = ConnectionError if TOO_LATE in text else StoreCut
        raise lost(text.partition("\n")[0]) from error
