"""Which objects of S3 go by obstore, and as whom."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from calque.plugins.s3.adapters.requests import S3Requests
from calque.plugins.s3.adapters.small_objects import SMALL, SmallObjects

PLACE = {"endpoint_url": "http://127.0.0.1:1", "client_kwargs": {"region_name": "eu-central-1"}}
KEYS = {"key": "k", "secret": "s"}


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine that has none."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def small(**options: object) -> SmallObjects:
    return SmallObjects(fsspec.filesystem("s3", skip_instance_cache=True, **options), 10)


def test_small_ones_of_plain_names_are_taken() -> None:
    objects = small(**PLACE, **KEYS)
    assert objects.takes("bucket", "t/ds=2024-01-01%2F1/é b", SMALL)
    assert not objects.takes("bucket", "t/f", SMALL + 1)
    assert not any(objects.takes("bucket", key, 1) for key in ("t//f", "/t", "t/", "t/../f", "./f", "line\nbreak"))


@pytest.mark.parametrize(
    ("options", "is_taken"),
    [
        ({**PLACE, "anon": True}, True),
        (PLACE, False),
        (KEYS, True),
        ({**PLACE, **KEYS, "requester_pays": True}, False),
        ({**PLACE, **KEYS, "s3_additional_kwargs": {"ServerSideEncryption": "AES256"}}, False),
    ],
    ids=["nobody", "no account", "no place", "who pays", "encrypted"],
)
def test_what_obstore_is_not_told_goes_by_s3fs(options: dict[str, object], is_taken: bool) -> None:
    assert small(**options).takes("bucket", "f", 1) is is_taken


def test_the_account_of_the_machine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert small(**PLACE).takes("bucket", "f", 1)


def test_a_profile_that_is_missing_is_refused() -> None:
    requests = S3Requests(fsspec.filesystem("s3", skip_instance_cache=True, profile="none", **PLACE))
    with pytest.raises(PermissionError, match="none"):
        requests.put("bucket", "f", b"x")
