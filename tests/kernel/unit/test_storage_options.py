"""Options of storages: one spelling for fsspec and delta-rs, and which of them a location is opened by."""

from __future__ import annotations

from calque.adapters.files.options import delta_options, filesystem_options
from calque.adapters.files.times import merged, read, written

GIVEN = {"endpoint_url": "http://127.0.0.1:9", "key": "k", "secret": "s", "region": "eu", "anon": "true"}


def test_hadoop_s_names_mean_the_same() -> None:
    hadoop = {"fs.s3a.endpoint": "s3:9000", "fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
    assert filesystem_options("s3", hadoop) == filesystem_options(
        "s3", {"endpoint_url": "https://s3:9000", "key": "k", "secret": "s"}
    )


def test_s3fs_gets_the_region_where_it_looks_for_it_and_truth_as_truth() -> None:
    found = filesystem_options("s3", GIVEN)
    assert (found["client_kwargs"], found["anon"], found["secret"]) == ({"region_name": "eu"}, True, "s")
    assert "region" not in found


def test_delta_rs_gets_its_own_names_and_may_speak_http_where_the_address_says_so() -> None:
    assert delta_options("s3a://b/t", GIVEN) == {
        "aws_endpoint_url": "http://127.0.0.1:9",
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_region": "eu",
        "aws_skip_signature": "true",
        "aws_allow_http": "true",
        "timeout": "15s",
        "retry_timeout": "10s",
    }
    assert delta_options("s3://b/t", {"retry_timeout": "1m"})["retry_timeout"] == "1m"
    assert "aws_allow_http" not in delta_options("s3://b/t", {"endpoint_url": "https://s3"})
    assert delta_options("/state", {"x": "y"}) == {"x": "y"}


def test_the_newest_note_of_times_wins_and_what_is_none_says_nothing() -> None:
    first, second = {("a", 1): 10, ("b", 1): 20}, {("a", 1): 11, ("a", 2): 12}
    assert read(written(first)) == first
    assert merged([("n2", second), ("n1", first)]) == {("a", 1): 11, ("b", 1): 20, ("a", 2): 12}
    assert [read(content) for content in (b"", b"{", b"[]", b'{"version": 2, "files": []}')] == [{}] * 4
