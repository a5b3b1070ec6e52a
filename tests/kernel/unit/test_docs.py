"""README and `docs/` say what is so: links lead somewhere, examples are read, commands and keys exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
import configuration_schema
import from_code
import pytest
from jsonschema import Draft202012Validator
from lifecycle import picture
from markdown_it import MarkdownIt
from markdown_it.token import Token

from calque.app import APP
from calque.cli import commands
from calque.commands.init import template
from calque.commands.options import CommandSettings
from calque.config.file import form_of
from calque.core.records.lifecycle import State, Transition
from support.places import ROOT
from support.services.authority import Authority

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
DECISIONS = (ROOT / "DECISIONS.md", *sorted((ROOT / "docs" / "decisions").glob("*.md")))
LINKED = (
    *PAGES,
    *DECISIONS,
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "schemas" / "README.md",
)
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
MADE = re.compile(r"<!-- made from the code: (.+?) -->")
LEAST = """\
[source]
name = "hq"
metastore = "thrift://metastore.hq:9083"

[targets.dr]
metastore = "thrift://metastore.dr:9083"
warehouse = "file:///data/hq"
"""
COMMAND = re.compile(r"(?:\$ )?(?:\.venv/bin/)?calque (.+)")
MAKE = re.compile(r"make ([a-z-]+)")
PLACEHOLDER = re.compile(r"[A-Z]+")
BEFORE_A_COMMAND = {"until", "while", "if", "do", "then", "else", "exec", "time", "!", "--"}
"""Words of a shell, or of another command, behind which a command begins."""


def tokens(text: str) -> Iterator[Token]:
    """All of a page's tokens, those within a line too."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def page_tokens(page: Path) -> list[Token]:
    return list(tokens(page.read_text(encoding="utf-8")))


def blocks(page: Path, language: str) -> list[str]:
    return [token.content for token in page_tokens(page) if token.type == "fence" and token.info == language]


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub and the site name them."""
    headings = [text.content for head, text in pairwise(page_tokens(page)) if head.type == "heading_open"]
    slugs = [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings]
    earlier = [slugs[:place].count(slug) for place, slug in enumerate(slugs)]
    return {f"{slug}-{count}" if count else slug for slug, count in zip(slugs, earlier, strict=True)}


def broken_links(page: Path) -> Iterator[str]:
    for token in page_tokens(page):
        link = str(token.attrGet("href") or token.attrGet("src") or "")
        place, _, anchor = link.partition("#")
        if link and "://" not in link:
            file = page.parent / place if place else page
            if not file.is_file() or (anchor and anchor not in anchors(file)):
                yield link


def code_lines(page: Path) -> list[str]:
    """The lines of code blocks, and the pieces of code in sentences."""
    code = [token.content for token in page_tokens(page) if token.type in {"fence", "code_block", "code_inline"}]
    return [line.partition("  #")[0].strip() for text in code for line in text.splitlines()]


def command_lines(page: Path) -> list[str]:
    """What follows `calque` on each of them that is a command."""
    return [match[1] for line in code_lines(page) if (match := COMMAND.fullmatch(line))]


def unknown_words(line: str) -> list[str]:
    """Of `epochs show N [--target NAME]` those that are no command and no option."""
    command: click.Command = commands
    unknown: list[str] = []
    words = iter(re.sub(r"[][…]", " ", line).split())
    for word in words:
        if word.startswith("-"):
            option = next((option for option in command.params if word in option.opts), None)
            unknown += [word] if option is None and word != "--help" else []
            if isinstance(option, click.Option) and not option.is_flag:
                next(words, None)
        elif isinstance(command, click.Group) and not PLACEHOLDER.fullmatch(word):
            names = word.split("|")
            unknown += [name for name in names if name not in command.commands]
            command = command.commands.get(names[0], command)
    return unknown


def shell_calls(text: str) -> list[list[str]]:
    """The words behind each `calque` that a shell would run of the text."""
    text = re.sub(r"(?<=\s)\d(?=>)", "", text.replace("\\\n", " ")).replace("\n", "\n; ")
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    calls: list[list[str]] = []
    begins, within, redirects = True, False, False
    for word in words:
        if redirects:
            redirects = False
        elif not word.strip("<>&") and word.strip("&"):
            redirects = True
        elif not word.strip("();|&"):
            begins, within = True, False
        elif within:
            calls[-1].append(word)
        elif begins and word.rpartition("/")[2] == "calque":
            calls.append([])
            within = True
        else:
            begins = word in BEFORE_A_COMMAND or (begins and "=" in word)
    return calls


def shell_texts(page: Path) -> list[str]:
    """What a reader of the page can give to a shell: blocks of `sh`, lines of examples, and lines at a prompt."""
    prompts = [line[2:] for text in blocks(page, "console") for line in text.splitlines() if line.startswith("$ ")]
    examples = [token.content for token in page_tokens(page) if token.type == "code_block"]
    return [*blocks(page, "sh"), *prompts, *examples]


def refusal(
    words: list[str],
    command: click.Command = commands,
    name: str | None = "calque",
    parent: click.Context | None = None,
) -> str:
    """Why the command line would refuse the words; empty where it would take them. Nothing is run."""
    try:
        context = command.make_context(name, [*words], parent, obj=CommandSettings(app=APP))
        if not isinstance(command, click.Group):
            return ""
        _, rest, _ = command.make_parser(context).parse_args([*words])
        if not rest:
            return "A command is missing"
        name, found, words = command.resolve_command(context, rest)
    except click.exceptions.Exit:
        return ""
    except click.ClickException as error:
        return error.format_message()
    assert found is not None
    return refusal(words, found, name, context)


def completed(example: Mapping[str, Any]) -> dict[str, Any]:
    """The example with what is missing for a whole configuration."""
    whole = tomllib.loads(LEAST)
    for name, section in example.items():
        if name == "targets":
            for target, keys in section.items():
                whole["targets"][target] = {**whole["targets"]["dr"], **keys}
        else:
            whole[name] = {**whole.get(name, {}), **section}
    return whole


def with_secrets(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The example with its variables set, and its files of secrets, and of a certificate, in the folder."""
    for name in re.findall(r'_env"? = "(\w+)"', text):
        monkeypatch.setenv(name, "secret")
    (folder / "secret").write_text("secret")
    for name, file in zip(("certificate", "key"), Authority(folder).client("calque"), strict=True):
        text = re.sub(rf'\b({name} = ")/[^"]+', rf"\g<1>{file}", text)
    return re.sub(r'(_file"? = ")[^"]+', rf"\g<1>{folder}/secret", text)


SCHEMA = Draft202012Validator(json.loads(configuration_schema.FILE.read_text(encoding="utf-8")))
EXAMPLES = [(page, text) for page in PAGES for text in blocks(page, "toml")]
WHOLE = [(page, text) for page, text in EXAMPLES if completed(tomllib.loads(text)) == tomllib.loads(text)]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_links_that_lead_nowhere_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A (b)\n## C\n## C\n[1](#a-b) [2](#c-1) [3](#c-2) [4](other.md) [5](page.md#d)\n")
    assert list(broken_links(page)) == ["#c-2", "other.md", "page.md#d"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_that_a_page_names_exists(page: Path) -> None:
    assert {line: unknown_words(line) for line in command_lines(page) if unknown_words(line)} == {}


def test_words_that_are_no_command_and_no_option_are_seen() -> None:
    assert unknown_words("epochs list|shwo [--target NAME]… -c calque.toml --wach --until") == [
        "shwo",
        "--wach",
        "--until",
    ]
    assert unknown_words("COMMAND [-c calque.toml] [--json]") == []
    assert unknown_words("statsu") == ["statsu"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_takes_every_command_that_a_page_gives_to_a_shell(page: Path) -> None:
    calls = [words for text in shell_texts(page) for words in shell_calls(text)]
    assert {shlex.join(words): refusal(words) for words in calls if refusal(words)} == {}


def test_the_commands_of_a_text_for_a_shell_are_found() -> None:
    text = """\
export PATH=$PWD/calque/bin:$PATH; python3 -m venv calque
calque run >run.log 2>&1 &  # calque status
until A=1 .venv/bin/calque verify -c dr.toml; do sleep 1; done
runuser -u calque -- /opt/calque/bin/calque sql \\
  "SELECT 1 > 2; SHOW TABLES" | head && calque wait <file 3
"""
    assert shell_calls(text) == [
        ["run"],
        ["verify", "-c", "dr.toml"],
        ["sql", "SELECT 1 > 2; SHOW TABLES"],
        ["wait", "3"],
    ]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("statsu", "There is no command"),
        ("-c dr.toml", "A command is missing"),
        ("epochs", "A command is missing"),
        ("epochs show", "Missing argument"),
        ("epochs show 3 --targets dr", "No such option"),
        ("verify --data everything", "is no choice"),
        ("wait --target dr --event-id soon", "not a valid"),
        ("check calque.toml", "unexpected extra argument"),
    ],
)
def test_what_the_command_line_refuses_is_seen(line: str, part: str) -> None:
    assert part in refusal(line.split())


@pytest.mark.parametrize("line", ["--json status", "epochs --json show 3", "epochs show --help", "done list"])
def test_what_the_command_line_takes_is_taken(line: str) -> None:
    assert refusal(line.split()) == ""


def test_the_table_of_commands_names_every_command() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    table = page.partition("## At a glance\n")[2].partition("\n## ")[0]
    named = {name for names in re.findall(r"^\| `calque ([\w|-]+)", table, re.MULTILINE) for name in names.split("|")}
    assert set(commands.commands) <= named


def test_readme_leads_from_the_demo_to_a_running_replica() -> None:
    named = [line.split()[0] for line in command_lines(ROOT / "README.md")]
    assert [name for name in named if name in commands.commands][:5] == ["init", "check", "run", "status", "verify"]
    assert {"demo", "test"} <= {match[1] for line in code_lines(ROOT / "README.md") if (match := MAKE.fullmatch(line))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {match[1] for line in code_lines(page) if (match := MAKE.fullmatch(line))} <= set(targets)


@pytest.mark.parametrize(("page", "text"), EXAMPLES, ids=lambda part: part.name if isinstance(part, Path) else "")
def test_every_example_of_a_configuration_is_valid_with_what_it_leaves_out(
    page: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = with_secrets(text, tmp_path, monkeypatch)
    data = completed(tomllib.loads(text))
    form_of(data, APP.file_kinds()).model_validate(data, context={"base": page.parent})


@pytest.mark.parametrize(("page", "text"), WHOLE, ids=lambda part: part.name if isinstance(part, Path) else "")
def test_every_whole_example_of_a_configuration_is_loaded(
    page: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "calque.toml"
    file.write_text(with_secrets(text, tmp_path, monkeypatch), encoding="utf-8")
    assert APP.load(file).only_source().name == "hq", page


def test_there_are_whole_examples_of_a_configuration() -> None:
    assert len(WHOLE) >= 2


def complaints(data: Mapping[str, Any]) -> list[str]:
    """The places of which an editor says that they are wrong, by the schema of `calque.toml`."""
    return [error.json_path for error in SCHEMA.iter_errors(data)]


def test_the_schema_of_the_configuration_is_what_the_code_gives() -> None:
    committed = configuration_schema.FILE.read_text(encoding="utf-8")
    assert committed == from_code.schema(), "Run `make tables` and commit what it wrote."


def test_the_schema_takes_the_configuration_that_init_writes_and_every_example_of_a_page() -> None:
    assert complaints(tomllib.loads(template(APP.file_kinds().sections))) == []
    found = {text: complaints(completed(tomllib.loads(text))) for _, text in EXAMPLES}
    assert {text: places for text, places in found.items() if places} == {}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[sorce]", "$"),
        ("[targets.dr]\nmetastores = 'thrift://dr:9083'", "$.targets.dr"),
        ("[targets.'d r']\nmetastore = 'thrift://dr:9083'\nwarehouse = '/dr'", "$.targets"),
        ("[source]\nname = 'hq'\nmetastore = 'thrift://hq:9083'\nscan = true", "$.source.scan"),
        ("[source]\nname = 'hq'\nmetastore = 'thrift://hq:9083'\nauth = 'kerberus'", "$.source.auth"),
        ("[window]\nmax_events = 0", "$.window.max_events"),
        ("[remotes]\nmetastore = 'thrift://dr:9083'\nwarehouse = '/dr'\nallow = 'thrift://*'", "$.remotes.allow"),
    ],
)
def test_the_schema_finds_what_is_wrong(text: str, place: str) -> None:
    assert place in complaints(tomllib.loads(text))


@pytest.mark.parametrize("section", from_code.MODELS)
def test_the_page_on_the_configuration_says_of_every_key_what_it_is_for(section: str) -> None:
    assert f"<!-- made from the code: keys of {section} -->" in CONFIGURATION
    rows = re.findall(r"^\| `(\w+)` \| \S.* \| \S.* \|$", from_code.keys(section), re.MULTILINE)
    assert rows == list(from_code.MODELS[section].model_fields)


def test_the_page_on_the_configuration_explains_every_choice() -> None:
    choices = {
        choice
        for model in from_code.MODELS.values()
        for field in model.model_fields.values()
        if get_origin(field.annotation) is Literal
        for choice in get_args(field.annotation)
    }
    assert {choice for choice in choices if f"`{choice}`" not in CONFIGURATION} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_program_on_a_page_is_python(page: Path) -> None:
    for text in blocks(page, "python"):
        ast.parse(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_statement_on_a_page_can_be_parsed(page: Path) -> None:
    for text in blocks(page, "sql"):
        APP.language().parse(text)


def test_readme_fits_on_a_few_screens() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_the_front_page_names_every_page_once_in_a_table_and_once_in_the_same_group_of_the_menu() -> None:
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    tables = {
        group: re.findall(r"^\| \[[^]]+\]\(([\w/-]+)\.md\)", rows, re.MULTILINE)
        for group, rows in re.findall(r"^\| (\w+) \| says \|\n((?:\|.*\n)+)", front, re.MULTILINE)
    }
    menu = {
        group.lower(): names.split()
        for group, names in re.findall(r":caption: (\w+)\n\n([^`]+)```", front, re.MULTILINE)
    }
    assert tables == menu
    pages = {page.stem for page in PAGES if page.parent.name == "docs"} - {"index"} | {"decisions/index"}
    assert sorted(name for names in menu.values() for name in names) == sorted(pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_has_from_the_code_is_what_the_code_gives(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == from_code.filled(text), "Run `make tables` and commit what it wrote."


def test_a_part_that_is_old_or_missing_is_written_anew() -> None:
    mark, table = "<!-- made from the code: keys of log -->", from_code.keys("log")
    assert (
        from_code.filled(f"# A\n{mark}\n| old |\n<!-- end -->\nB\n") == f"# A\n{mark}\n\n{table}\n\n<!-- end -->\nB\n"
    )
    assert from_code.filled(f"{mark}\n<!-- end -->") == f"{mark}\n\n{table}\n\n<!-- end -->"


def test_every_part_from_the_code_stands_on_one_page() -> None:
    made = [part for page in PAGES for part in MADE.findall(page.read_text(encoding="utf-8"))]
    assert sorted(made) == sorted(from_code.PARTS)


@pytest.mark.parametrize("plugin", from_code.PLUGINS)
def test_the_page_of_a_plugin_ends_with_the_plugin_s_modules(plugin: str) -> None:
    [text] = [
        text for text in (page.read_text(encoding="utf-8") for page in PAGES) if f"modules of {plugin} -->" in text
    ]
    last_part = text.split("\n## ")[-1]
    assert last_part.startswith("In the code\n")
    assert f"modules of {plugin} -->" in last_part
    assert text.endswith("<!-- end -->\n")


def test_the_picture_of_a_table_s_life_is_what_the_code_draws() -> None:
    committed = from_code.PICTURE.read_text(encoding="utf-8")
    assert committed == picture(), "Run `make tables` and commit what it wrote."
    assert f"(pictures/{from_code.PICTURE.name})" in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_of_a_table_s_life_shows_every_state_and_every_change() -> None:
    drawn = set(re.findall(r">([a-z ]+)</text>", picture()))
    assert drawn == {state.value for state in State} | {change.value for change in Transition}
