"""Small objects of an S3 store, written and read whole, by obstore: its requests take a tenth of the processor time of
s3fs's, which is what many small files cost. All else is `s3_requests`'s."""

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
"""Objects up to this size, in bytes: they are sent and answered within the time in which a store may be silent."""
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
"""By what the answers for a bucket in another region are known."""
KEPT = timedelta(minutes=5)
"""For how long obstore holds keys that botocore gave."""


class SmallObjects:
    """`silent` is for how many seconds a request is waited for. `put` and `get` raise `OSError`, whose cause is
    `StoreAnswer` where the store gave one, and `StoreCut` where a connection ended; they give None for a bucket that
    turns out to be in another region, which is left to s3fs from then on: botocore finds it."""

    def __init__(self, filesystem: AbstractFileSystem, silent: float) -> None:
        self._files, self._silent = filesystem, silent
        self._lock = threading.Lock()
        self._stores: dict[str, S3Store] = {}
        self._elsewhere: set[str] = set()

    def takes(self, bucket: str, key: str, size: int) -> bool:
        """Whether it can write and read the object: obstore has no names with empty parts, or with control
        characters."""
        is_plain = key.isprintable() and not {"", ".", ".."}.intersection(key.split("/"))
        return is_plain and size <= SMALL and bucket not in self._elsewhere and self._options is not None

    def put(self, bucket: str, key: str, content: bytes, *, new: bool) -> str | None:
        """Its ETag. With `new`, `FileExistsError` where there is one and the store knows conditions."""
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
        """What obstore is told of s3fs's options; None where it can't do what they ask for. Where the store is and who
        asks is botocore's to say: obstore by itself would take other parts of it from the environment."""
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
    """As they are now: botocore has those of a machine's account anew when they end."""
    frozen = credentials.get_frozen_credentials()
    return {
        "access_key_id": frozen.access_key,
        "secret_access_key": frozen.secret_key,
        "token": frozen.token,
        "expires_at": datetime.now(UTC) + KEPT,
    }


class BucketElsewhere(Exception):
    """The store is not where the bucket is, and says where."""


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
