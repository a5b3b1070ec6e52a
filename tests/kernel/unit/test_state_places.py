"""Where state lies: a folder of one source is found by every version, and a second source shares nothing with it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from calque.app import APP
from calque.model.state_places import SourcePlaces, TargetPlaces


def places_of(places: SourcePlaces | TargetPlaces) -> dict[str, str]:
    values = {field.name for field in fields(places)}
    return {
        name: getattr(places, name)
        for name, member in vars(type(places)).items()
        if isinstance(member, property) and name not in values
    }


def test_the_places_of_a_folders_own_source_have_no_name_in_them() -> None:
    assert places_of(SourcePlaces()) == {
        "journal": "journal",
        "history": "history",
        "evidence": "evidence",
        "commits": "commits",
        "scans": "scans",
        "marks": "marks",
        "pins": "pins",
        "journal_record": "journal",
        "notice_keys_record": "notice-keys",
        "identity_record": "source-identity",
        "gaps_record": "gaps",
        "status_record": "capturing",
        "journal_lock": "locks/journal.lock",
        "role": "capture",
        "query": "capture",
        "looks": "looks.sqlite",
    }


def test_the_places_of_a_target_have_its_name_in_them() -> None:
    assert places_of(TargetPlaces("dr")) == {
        "ledger": "ledgers/dr",
        "loads": "loads/dr",
        "status_record": "running/dr",
        "window_record": "windows/dr",
        "sweep_record": "sweep/dr",
        "verify_record": "verified/dr",
        "sweep_lock": "locks/sweep.dr.lock",
        "marks_record": "marks-told/dr",
        "pause_record": "paused/dr",
        "pause_rules_record": "paused-tables/dr",
        "secondary_record": "secondary-tables/dr",
        "secondary_lock": "locks/secondary-tables.dr.lock",
        "requests": "requests/dr/",
        "holds": "hold/dr/",
        "pause_lock": "locks/paused.dr.lock",
        "role": "target dr",
        "pool": "target.dr",
    }


def test_no_two_sources_of_a_folder_and_no_target_share_a_place() -> None:
    each = [
        SourcePlaces(),
        SourcePlaces("lake"),
        SourcePlaces("journal"),
        TargetPlaces("lake"),
        TargetPlaces("capture"),
    ]
    found = [set(places_of(places).values()) for places in each]
    for number, places in enumerate(found):
        for others in found[:number]:
            assert places & others == set()


def test_a_configuration_has_one_source_and_its_targets_follow_it(tmp_path: Path) -> None:
    file = tmp_path / "calque.toml"
    file.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://hq:1"\n'
        '[targets.dr]\nmetastore = "thrift://dr:1"\nwarehouse = "dr"\n'
        '[targets.near]\nmetastore = "thrift://near:1"\nwarehouse = "near"\n'
    )
    wiring = APP.wiring(APP.load(file))
    config, source = wiring.config, wiring.only_source()
    assert list(wiring.sources) == list(config.sources) == ["hq"]
    assert config.targets_of("hq") == ("dr", "near") == tuple(wiring.targets)
    assert config.targets_of("other") == ()
    assert config.source_of("dr") is source.plug
    assert [target.source for target in wiring.targets.values()] == [source, source]
    checkpoints = [wiring.folder.checkpoint(source.places.query, *counts) for counts in ((), (2,), (0, 1), (2, 1))]
    names = ["capture", "capture.2", "capture.takeover-1", "capture.2.takeover-1"]
    assert checkpoints == [str(tmp_path / "checkpoints" / name) for name in names]
