"""A manifest at a target names the copies of the files that the source's names, one to one, whatever their names."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.core.formats.layout import is_data, join, place
from calque.core.formats.symlinks import lines_of, moved
from calque.errors import Refused

EXAMPLES = {"check": 30, "prove": 20_000}
LAW = settings(
    max_examples=EXAMPLES.get(settings.get_current_profile_name(), 200), suppress_health_check=list(HealthCheck)
)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0\r\n*?[{\\", exclude_categories=["Cs"]), min_size=1, max_size=5
).filter(lambda name: name != "..")
ROOTS = st.sampled_from(["", "file:", "file://", "hdfs://hq", "s3a://bucket", "S3://bucket"])
PATHS = st.builds(lambda root, names: root + "".join(f"/{name}" for name in names), ROOTS, st.lists(NAMES, min_size=1))
LOCATIONS = st.sampled_from(["/target/t", "file:///target/t", "s3a://dr/w/t/", "hdfs://dr/w/d.db/_calque/t.r1/data/7"])
MANIFEST = "hdfs://hq/w/t/manifest"


@LAW
@given(st.lists(PATHS), LOCATIONS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_manifest_that_is_moved_names_the_copies_one_to_one(named: list[str], location: str, end: str) -> None:
    lines = lines_of(MANIFEST, "".join(f"{path}{end}" for path in named).encode())
    assert len(lines) == len(named)
    again = lines_of(join(location, "manifest"), moved(lines, location))
    assert [line.path for line in again] == [join(str(place(location)), line.copy) for line in lines]
    assert len({line.copy for line in lines}) == len({line.path for line in lines})
    assert len({line.path for line in again}) == len({line.path for line in lines})
    for line, copy in zip(lines, again, strict=True):
        assert copy.path.rsplit("/", 1)[-1] == line.path.rsplit("/", 1)[-1]
        assert place(location).contains(place(copy.path))
        assert not is_data(line.copy)


@LAW
@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode), LOCATIONS)
def test_whatever_a_manifest_has_is_refused_or_names_files_below_the_target_s_place(
    content: bytes, location: str
) -> None:
    try:
        lines = lines_of(MANIFEST, content)
    except Refused:
        return
    for line in lines_of(join(location, "manifest"), moved(lines, location)):
        assert place(location).contains(place(line.path))
