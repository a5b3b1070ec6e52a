"""`calque init`: what stands in the file, what is a comment, and flags that fill it in."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from calque.app import APP
from calque.cli import main
from calque.commands.init import Places, template
from support.judges.documents import read_document

SECTIONS = APP.file_kinds().sections
TEMPLATE = template(SECTIONS)
DEFAULTS = [number for number, line in enumerate(TEMPLATE.splitlines()) if re.match(r"#\w", line)]
SAID = {
    "source": {"name", "metastore"},
    "state": {"path"},
    "targets": {"dr"},
    **{name: set() for name in ("journal", "window", "serve", "log", "done", "repl")},
}
HQ, DR, LAKE = "thrift://hq:9083", "thrift://dr:9083", "thrift://lake:9083,thrift://lake-2:9083"


def written(file: Path, *words: str) -> str:
    assert main(["init", str(file), *words]) == 0
    return file.read_text(encoding="utf-8")


def without_comment(number: int) -> str:
    lines = TEMPLATE.splitlines()
    return "\n".join([*lines[:number], lines[number].removeprefix("#"), *lines[number + 1 :]])


def test_only_what_must_be_said_is_no_comment() -> None:
    document = tomllib.loads(TEMPLATE)
    assert {name: set(section) for name, section in document.items()} == SAID
    assert set(document["targets"]["dr"]) == {"metastore", "warehouse", "include"}


@pytest.mark.parametrize("number", DEFAULTS, ids=lambda number: TEMPLATE.splitlines()[number].partition(" = ")[0])
def test_a_default_that_is_no_comment_any_more_changes_nothing(number: int, tmp_path: Path) -> None:
    path = tmp_path / "calque.toml"
    assert APP.parse(path, without_comment(number)) == APP.parse(path, TEMPLATE)


def test_all_defaults_may_stand_in_the_file_together(tmp_path: Path) -> None:
    path = tmp_path / "calque.toml"
    assert APP.parse(path, re.sub(r"(?m)^#(?=\w)", "", TEMPLATE)) == APP.parse(path, TEMPLATE)


def test_flags_fill_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "calque.toml"
    flags = ["--source", HQ, "--target", f"dr={DR}", "--target", f"lake={LAKE}", "--warehouse", "lake=s3://b/lake"]
    text = written(file, *flags, "--include", "sales.*", "--include", r"/hr[.]\w+/", "--warehouse", "dr=replicas/dr")
    assert capsys.readouterr().out == f"Wrote {file}. Run 'calque check -c {file}'.\n"
    document = tomllib.loads(text)
    include = ["sales.*", r"/hr[.]\w+/"]
    assert document["source"] == {"name": "hq", "metastore": HQ}
    assert document["targets"] == {
        "dr": {"metastore": DR, "warehouse": "replicas/dr", "include": include},
        "lake": {"metastore": LAKE, "warehouse": "s3://b/lake", "include": include},
    }
    config = APP.load(file)
    assert config.targets["dr"].keys.warehouse == f"file://{tmp_path}/replicas/dr"
    assert [line for line in text.splitlines() if line.startswith("#lease = ")] == [
        line for line in TEMPLATE.splitlines() if line.startswith("#lease = ")
    ]


def test_values_that_are_filled_in_leave_the_other_lines_as_they_are() -> None:
    places = Places(HQ, {"dr": DR}, {"dr": "file:///data/a/warehouse/with/a/long/name/dr"}, ("sales.*",))
    before, after = TEMPLATE.splitlines(), template(SECTIONS, places).splitlines()
    changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert [other for _, other in changed] == [
        'metastore = "thrift://hq:9083"              # its address; a comma-separated list fails over',
        'metastore = "thrift://dr:9083"              # its address; a comma-separated list fails over',
        (
            'warehouse = "file:///data/a/warehouse/with/a/long/name/dr"  # where its files lie: outside its '
            "metastore's own warehouse directories"
        ),
        (
            'include = ["sales.*"]                       # database.table globs, or /regular expressions/: '
            '["sales.*", "hr.staff"]'
        ),
    ]


@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        ([], "[source] and [targets.dr]"),
        (["--source", HQ], "[targets.dr]"),
        (["--warehouse", "dr=dr"], "[source] and [targets.dr]"),
        (["--source", HQ, "--target", f"lake={DR}"], "[targets.lake]"),
    ],
)
def test_it_says_what_is_still_to_be_filled_in(
    flags: list[str], missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "calque.toml"
    APP.parse(file, written(file, *flags))
    assert capsys.readouterr().out == f"Wrote {file}. Fill in {missing}, then run 'calque check -c {file}'.\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--target", f"dr={DR}", "--warehouse", "drr=w"], '--warehouse: "drr" is no target. The nearest is dr'),
        (["--warehouse", "lake=w"], '--warehouse: "lake" is no target. Known: dr'),
        (["--target", f"dr={DR}", "--target", "dr=x"], '--target: "dr" is given 2 times'),
        (["--warehouse", "dr=a", "--warehouse", "dr=b"], '--warehouse: "dr" is given 2 times'),
        (["--target", DR], f'--target: "{DR}" is no name and place. Write NAME=URI'),
        (["--target", f"a.b={DR}"], '--target: "a.b" is no name for a target. Letters, digits, "_" and "-" make one'),
        (["--source", "hq:9083"], 'source.metastore: "hq:9083" is not the address of a metastore. One begins with'),
        (["--target", "dr=thrift://"], 'targets.dr.metastore: "thrift://" is not the address of a metastore.'),
        (["--warehouse", "dr=s3://a/../b"], 'targets.dr.warehouse: "s3://a/../b" steps upwards.'),
        (["--include", "sales"], '--include: pattern "sales" names no table.'),
        (["--target", f"a={DR}", "--target", f"b={DR}"], "a and b would both write every table into"),
        (["--source", HQ, "--target", f"dr={HQ}"], "every table would be replicated onto itself."),
    ],
)
def test_bad_flags_are_misuse_and_nothing_is_written(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "calque.toml"
    assert main(["init", str(file), *flags, "--json"]) == 64
    out, err = capsys.readouterr()
    assert (read_document("error", out)["error"]["kind"], err.count("\n"), file.parent.exists()) == ("usage", 1, False)
    assert said in err
    assert str(file) not in err
