"""Several local names of one remote table: how links are spread over layers."""

from __future__ import annotations

from hypothesis import given

from calque.core.images.overlap import shared_name
from calque.core.policy.admit import Admission
from calque.model.names import TableName
from calque.plugins.remotes.core.layers import layer_policies, layers_of
from calque.plugins.remotes.model import Links
from support.worlds.links import LINKS, REMOTE_DATABASES, TEMPLATE, policies_of


def images(links: Links) -> set[tuple[TableName, TableName]]:
    """(local name, remote name) of all tables that the links give an image."""
    every = [TableName(database, table) for database in REMOTE_DATABASES for table in ("a", "b", "p", "x", "y", "tmp")]
    by_database = {
        TableName(local, remote_table.table): remote_table
        for local, remote in links.databases.items()
        for remote_table in every
        if remote_table.database == remote
    }
    return {*(by_database | {**links.tables}).items()}


@given(LINKS)
def test_every_local_name_is_the_image_of_its_remote_name_in_one_layer(links: Links) -> None:
    admissions = [Admission(policy) for policy in policies_of(links)]
    pairs = images(links)
    found = [
        (local, remote)
        for admission in admissions
        for local in {local for local, _ in pairs}
        if (remote := admission.source_of(local)) is not None
    ]
    assert sorted(found) == sorted(pairs)
    assert all(not admission.provable_collisions() for admission in admissions)
    for number, one in enumerate(admissions):
        assert [shared_name(one, other) for other in admissions[:number]] == [None] * number


@given(LINKS, LINKS)
def test_links_that_come_and_go_move_no_other_link(before: Links, more: Links) -> None:
    layers = layers_of(before, {})
    grown = Links({**more.tables, **before.tables}, {**more.databases, **before.databases})
    grown_layers = layers_of(grown, layers)
    assert {local: grown_layers[local] for local in layers} == layers
    assert layers_of(before, grown_layers) == layers


@given(LINKS)
def test_links_without_shared_remote_names_are_one_layer(links: Links) -> None:
    remote_names = [remote for _, remote in links]
    databases = [remote for remote in remote_names if not remote.table]
    apart = len({*remote_names}) == len(remote_names) and not any(
        remote.table and TableName(remote.database) in databases for remote in remote_names
    )
    assert (len({*layers_of(links, {}).values()}) == 1) or not apart


def test_a_linked_database_leaves_out_a_table_whose_local_name_is_occupied() -> None:
    links = Links(databases={"shop": "sales"})
    (policy,) = layer_policies(TEMPLATE, links, layers_of(links, {}), [TableName("shop", "orders")]).values()
    admission = Admission(policy)
    assert not admission.takes(TableName("sales", "orders"))
    assert admission.takes(TableName("sales", "items"))


def test_names_that_no_glob_can_write_are_linked_exactly() -> None:
    links = Links({TableName("a", "t"): TableName("sales", "or*ders")}, {"b": "we ird"})
    (policy,) = layer_policies(TEMPLATE, links, layers_of(links, {}), ()).values()
    admission = Admission(policy)
    taken = [TableName("sales", "or*ders"), TableName("sales", "or1ders"), TableName("we ird", "t")]
    assert [name for name in taken if admission.takes(name)] == [taken[0], taken[2]]
    assert admission.source_of(TableName("b", "t")) == taken[2]


def test_a_layer_is_a_target_with_a_name_of_its_own() -> None:
    remote = TableName("sales", "orders")
    links = Links({TableName("a", "t"): remote, TableName("b", "t"): remote})
    assert [policy.target for policy in policies_of(links)] == ["links", "links.2"]


def test_ten_thousand_links_of_which_two_share_each_remote_table_are_two_layers() -> None:
    links = Links({TableName("here", f"t{i}"): TableName("there", f"t{i // 2}") for i in range(10_000)})
    assert {*layers_of(links, {}).values()} == {0, 1}
