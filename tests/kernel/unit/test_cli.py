"""The command line: what may be written, exit codes, one-line errors, what goes to which stream."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from calque.app import APP
from calque.cli import commands, main
from calque.commands.init import template
from calque.commands.options import CommandSettings
from calque.commands.output import print_json, print_table
from calque.core.records.state_formats import LEDGER_FORMAT
from calque.model.names import Span
from calque.model.state_places import STATE_FORMAT
from support.judges.documents import read_document

SALES = """--tables: pattern "sales" names no table. A pattern is database.table. Write "sales.*". \
See 'calque verify --help'."""
SLASH = """--tables: "/sales" is no pattern. A regular expression stands between two slashes. Write a glob such as \
"sales.*" or a regular expression such as "/sales_[0-9]+[.].*/". See 'calque verify --help'."""
FIVE_X = """--seconds: "5x" is not a duration. Units are ms, s, m, h, d and w; without one it is seconds. Write "10s". \
See 'calque demo --help'."""
HEAVY = ("pyspark", "deltalake", "pyarrow", "pandas", "pydantic", "rich")

TEMPLATE = template(APP.file_kinds().sections)


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name, command in group.commands.items():
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found += leaves(command, (*path, name))
    return found


ALL = leaves(commands)
NAMES = [" ".join(path) for path, _ in ALL]
CONTRACT = {
    "demo",
    "init",
    "check",
    "run",
    "status",
    "plan",
    "bootstrap",
    "replay",
    "pause",
    "resume",
    "reload",
    "release-drops",
    "quarantine",
    "quarantine list",
    "quarantine release",
    "adopt",
    "verify",
    "repair",
    "epochs",
    "epochs list",
    "epochs show",
    "epochs diff",
    "history",
    "wait",
    "sweep",
    "sql",
    "journal",
    "journal tail",
    "journal show",
    "journal create",
    "journal move",
    "done",
    "done mark",
    "done list",
    "done check",
    "done wait",
    "notices",
    "notices tail",
    "identity",
    "identity show",
    "identity accept",
    "monitoring",
    "monitoring grafana",
    "monitoring alerts",
}


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a valid calque.toml, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calque.toml").write_text(TEMPLATE, encoding="utf-8")
    return tmp_path


def test_every_command_of_the_contract_is_there() -> None:
    assert set(NAMES) == CONTRACT


@pytest.mark.parametrize("path", [(), *(path for path, _ in ALL)], ids=["calque", *NAMES])
def test_every_command_has_help_with_examples_that_begin_with_its_name(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "--help"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"  {' '.join(('calque', *path))}" in said.out.split("Examples:")[1]


@pytest.mark.parametrize(("path", "command"), [leaf for leaf in ALL if not isinstance(leaf[1], click.Group)], ids=str)
def test_every_example_is_a_line_that_parses(path: tuple[str, ...], command: click.Command) -> None:
    import shlex

    for line in (command.epilog or "").splitlines()[2:]:
        words = shlex.split(line)[1:]
        assert tuple(words[: len(path)]) == path
        command.make_context(path[-1], words[len(path) :], obj=CommandSettings())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("statsu", "There is no command \"statsu\". The nearest is status. See 'calque --help'."),
        ("epochs shwo 3", "There is no command \"shwo\". The nearest is show. See 'calque epochs --help'."),
        ("monitoring", "A command is missing. There are grafana, alerts. See 'calque monitoring --help'."),
        ("epochs", "A command is missing. There are list, show, diff. See 'calque epochs --help'."),
        ("status --wach", "There is no option \"--wach\". The nearest is --watch. See 'calque status --help'."),
        ("--jsn status", "There is no option \"--jsn\". The nearest is --json. See 'calque --help'."),
        ("run --until heda", '--until: "heda" is neither "head" nor an event id. See \'calque run --help\'.'),
        ("run --target", "Option '--target' requires an argument. See 'calque --help'."),
        ("wait --target a", "--event-id is missing. The command needs it. See 'calque wait --help'."),
        ("wait --event-id 1", "--target is missing. The command needs it. See 'calque wait --help'."),
        ("wait --event-id x --target a", "--event-id: 'x' is not a valid integer range. See 'calque wait --help'."),
        (
            "wait --target a --target b --event-id 3",
            "--target: given 2 times, and one target is meant. See 'calque wait --help'.",
        ),
        ("verify --data chek", "--data: \"chek\" is no choice. The nearest is checksum. See 'calque verify --help'."),
        ("verify --tables sales", SALES),
        ("verify --tables /sales", SLASH),
        (
            "epochs show x",
            (
                'N of `calque epochs show N`: "x" is neither an epoch\'s number nor @ and an event id. '
                "See 'calque epochs show --help'."
            ),
        ),
        (
            "epochs diff 3",
            "B of `calque epochs diff A B` is missing. The command needs it. See 'calque epochs diff --help'.",
        ),
        ("sql a b", "Got unexpected extra argument (b). See 'calque sql --help'."),
        ("demo --seconds 5x", FIVE_X),
        (
            "status --watch --json",
            "--watch and --json exclude each other. --json prints one document. See 'calque status --help'.",
        ),
    ],
)
def test_misuse_is_one_line_and_64(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 64
    out, err = capsys.readouterr()
    assert err == f"calque: {said}\n"
    assert [found["kind"] for found in json.loads(out).values()] == ["usage"] if "--json" in words else out == ""


def test_no_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 64
    assert capsys.readouterr().err.startswith("calque: A command is missing. There are demo, init, check,")


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    "words",
    [
        "run --target drr",
        "plan --target drr",
        "bootstrap --target drr",
        "replay --target drr --from 3",
        "pause --target drr",
        "resume --target drr",
        "quarantine list --target drr",
        "quarantine release --target drr",
        "release-drops --target drr",
        "adopt --target drr --tables a.b",
        "verify --target drr",
        "repair --target drr",
        "epochs list --target drr",
        "epochs show 3 --target drr",
        "epochs diff 3 @4 --target drr",
        "wait --target drr --event-id 3",
        "sweep --target drr",
        "identity accept --target drr 1",
    ],
)
def test_an_unknown_target_is_refused_by_every_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 65
    said = 'calque: There is no target "drr". The nearest is dr. Name a target of the configuration.\n'
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("words", ["epochs list", "epochs show 3", "epochs diff 3 4", "history a.b"])
def test_a_command_about_one_target_asks_for_it_before_it_looks_at_the_state(
    words: str, configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEMPLATE + '[targets.lake]\nmetastore = "thrift://127.0.0.1:9085"\nwarehouse = "file:///data/lake"\n'
    (configured / "calque.toml").write_text(text, encoding="utf-8")
    (configured / "state").write_text("no folder", encoding="utf-8")
    assert main(words.split()) == 64
    said = "--target is missing. There are several targets: dr, lake. Name one."
    assert capsys.readouterr() == ("", f"calque: {said}\n")
    assert main([*words.split(), "--target", "dr", "--target", "lake"]) == 64
    assert "--target: given 2 times, and one target is meant." in capsys.readouterr().err


@pytest.mark.parametrize("words", ["-c other.toml --json check", "check --json -c other.toml"])
def test_shared_options_stand_before_or_after_the_command(
    words: str, configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (configured / "other.toml").write_text("[source]\n", encoding="utf-8")
    assert main(words.split()) == 65
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["where"] == {"file": "other.toml", "line": None, "key": "targets"}
    assert said.err.startswith("calque: other.toml: targets is missing.")


def test_the_later_shared_option_wins(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "none.toml", "init", "-c", "new.toml"]) == 0
    assert (configured / "new.toml").exists()
    capsys.readouterr()


def test_a_wrong_configuration_is_one_line_and_65(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configured / "calque.toml"
    file.write_text(TEMPLATE.replace('#poll = "250ms"', 'pol = "250ms"'), encoding="utf-8")
    assert main(["status"]) == 65
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("calque: calque.toml:9: source.pol is no key. The nearest is poll.")


def test_debug_shows_the_traceback_before_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-c", str(tmp_path / "none.toml"), "--debug"]) == 65
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1].startswith("calque: There is no file")


def test_init_writes_a_file_that_is_valid_and_says_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "conf" / "new" / "dr.toml"
    assert main(["init", str(file), "--json"]) == 0
    assert read_document("init", capsys.readouterr().out) == {"written": str(file)}
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    sections = [written["source"], written["targets"]["dr"]]
    sections[0] = {key: sections[0][key] for key in ("name", "metastore")}
    sections[1] = {key: sections[1][key] for key in ("metastore", "warehouse")}
    least = file.with_name("least.toml")
    text = "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
        for name, section in zip(("source", "targets.dr"), sections, strict=True)
    )
    least.write_text(text, encoding="utf-8")
    assert APP.load(file) == APP.load(least)


def test_init_names_every_key_there_is(tmp_path: Path) -> None:
    file = tmp_path / "calque.toml"
    file.write_text(TEMPLATE, encoding="utf-8")
    config = APP.load(file)
    for section in config.sections():
        for key in type(section).model_fields:
            assert any(f"\n{sign}{key} = " in TEMPLATE for sign in ("", "#", "# "))


def test_init_overwrites_nothing(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (configured / "calque.toml").write_text("mine", encoding="utf-8")
    assert main(["init"]) == 65
    said = (
        "calque: calque.toml exists already. calque init overwrites nothing. Name another file, or remove that one.\n"
    )
    assert capsys.readouterr() == ("", said)
    assert (configured / "calque.toml").read_text(encoding="utf-8") == "mine"
    assert main(["init", "calque.toml/x"]) == 65


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    calque, packages, java, formats = capsys.readouterr().out.splitlines()
    assert calque.startswith("calque ")
    assert packages.startswith(f"Python {platform.python_version()}, PySpark 4.")
    assert re.fullmatch(r"Java \d+.*\(/.*java\)", java)
    assert formats == f"Formats: state folder {STATE_FORMAT}, ledger {LEDGER_FORMAT}"


@pytest.mark.parametrize(
    ("line", "said"),
    [("calque sta", "plain,status"), ("calque run --unt", "plain,--until"), ("calque done ma", "plain,mark")],
)
def test_shells_complete_a_line(line: str, said: str) -> None:
    asking = {"_CALQUE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    command = [sys.executable, "-c", "import sys; from calque.cli import main; sys.exit(main())"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **asking})
    assert (done.returncode, done.stdout.split()) == (0, [said]), done.stderr
    script = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "_CALQUE_COMPLETE": "zsh_source"}
    )
    assert "#compdef calque" in script.stdout


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from calque.cli import main; main(['--help']); main(['run', '--help']);"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_a_defect_is_one_line_and_70(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command("defect")
    def defect() -> None:
        raise KeyError("x\ny")

    commands.add_command(defect)
    try:
        assert main(["defect"]) == 70
    finally:
        del commands.commands["defect"]
    said = (
        "calque: KeyError: 'x\\ny'. This is a defect of calque. Run it again with --debug, and report the traceback.\n"
    )
    assert capsys.readouterr() == ("", said)


def test_a_reader_that_went_away_is_no_traceback() -> None:
    program = "from calque.cli import main; import sys; sys.exit(main(['--help']))"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stderr
        child.stdout.close()
        said = child.stderr.read()
    assert (child.returncode, said) == (75, "")


def test_tables_keep_brackets_and_long_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "at"], [["[bold]p=[1]", None], ["x" * 300, 7]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1].split() == ["[bold]p=[1]", "-"]
    assert lines[2].split() == ["x" * 300, "7"]


def test_json_is_one_document_of_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"span": Span(1, 2), "name": "é"})
    assert json.loads(capsys.readouterr().out) == {"span": {"after": 1, "upto": 2}, "name": "é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json(float("nan"))
    with pytest.raises(TypeError, match="JSON can't say set"):
        print_json({1})
