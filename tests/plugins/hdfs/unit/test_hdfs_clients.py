"""Clients of one HDFS: one that does not answer is left, once, and lives on for a while."""

from __future__ import annotations

from weakref import ref

from calque.plugins.hdfs.adapters.clients import Clients


class Client:
    """Nothing is asked of it here."""


def test_who_does_not_answer_is_asked_no_more_and_lives_on_for_what_it_still_has_to_tell() -> None:
    opened: list[bool] = []

    def client(again: bool) -> Client:
        opened.append(again)
        return Client()

    clients = Clients(client)  # type: ignore[arg-type]
    with clients.one() as first:
        clients.leave(first)
        clients.leave(first)
    with clients.one() as second:
        assert second is not first
    left = ref(first)
    del first
    assert left() is not None
    assert opened == [False, True]
