"""The language of `calque sql`: what each text says, and what is said of a text that says nothing."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest

from calque.app import APP
from calque.errors import Refused, StatementSyntaxError
from calque.plugins.clusters.statements.kinds import (
    AddSecondaryCluster,
    DropSecondaryCluster,
    ExplainCluster,
    ShowClusters,
    ShowClustersOfTable,
    UseCluster,
)
from calque.plugins.delta_replicas.statements.kinds import ShowVersions
from calque.plugins.dumps.statements.kinds import (
    ExportTable,
    ImportTable,
    ReplDump,
    ReplLoad,
    ReplLoadDirectory,
    ReplStatus,
)
from calque.plugins.marks.statements.kinds import MarkSetDone, ShowSetsDone
from calque.plugins.remotes.statements.kinds import (
    CreateRemoteDatabase,
    CreateRemoteTable,
    DescribeRemoteDatabase,
    DescribeRemoteTable,
    DropRemoteDatabase,
    DropRemoteTable,
    SetDatabaseProperties,
    SetRemoteData,
    SetTableProperties,
    ShowRemoteDatabases,
    ShowRemoteTables,
)
from calque.statements.kinds import Help, ShowEpochs, ShowTables, ShowTargets, UseDatabase
from calque.statements.own_forms import KERNEL
from calque.statements.parse import Parameter, Statement
from calque.statements.split import Piece, Unclosed, is_complete, split
from calque.statements.statement import EngineStatement, QualifiedTable, ReplicationPolicy
from support.places import ROOT

LANGUAGE = APP.language()
parse, completions = LANGUAGE.parse, LANGUAGE.completions
SALES = ReplicationPolicy("sales", None, None)
ORDERS = QualifiedTable("sales", "orders")
T = QualifiedTable(None, "t")

SAID: list[tuple[str, Statement]] = [
    ("SHOW TARGETS", ShowTargets()),
    ("show\n\ttargets", ShowTargets()),
    ("SHOW TABLES AT dr", ShowTables("dr", None)),
    ("Show Tables At dr-2 Like 'sales.*'", ShowTables("dr-2", "sales.*")),
    ('SHOW TABLES AT Dr LIKE "it\'s"', ShowTables("Dr", "it's")),
    ("SHOW TABLES AT `a ``b`", ShowTables("a `b", None)),
    ("SHOW EPOCHS", ShowEpochs(None)),
    ("SHOW /* which */ EPOCHS -- of\nAT dr", ShowEpochs("dr")),
    ("USE Sales", UseDatabase("sales")),
    ("USE `cluster`", UseDatabase("cluster")),
    ("USE clusters", UseDatabase("clusters")),
    ("USE tables", UseDatabase("tables")),
    ("USE 2024_q1", UseDatabase("2024_q1")),
    ("USE 007", UseDatabase("007")),
    ("HELP", Help(None)),
    ("HELP show tables", Help("show tables")),
    ("REPL DUMP sales", ReplDump(SALES, None, None, None, None, {})),
    (
        "REPL DUMP sales.['orders', items].['tmp_.*'] REPLACE sales FROM 7 TO 9 LIMIT 3 WITH ('a' = 'b', 'c' = '')",
        ReplDump(ReplicationPolicy("sales", ("orders", "items"), ("tmp_.*",)), SALES, 7, 9, 3, {"a": "b", "c": ""}),
    ),
    (
        r"REPL DUMP sales.'o\d+\\.x'.'t'",
        ReplDump(ReplicationPolicy("sales", (r"o\d+\.x",), ("t",)), None, None, None, None, {}),
    ),
    ("REPL DUMP sales.[] LIMIT 1", ReplDump(ReplicationPolicy("sales", (), None), None, None, None, 1, {})),
    ("REPL LOAD FROM '/d'", ReplLoadDirectory(None, "/d", {})),
    ("REPL LOAD sales FROM '/d' WITH ()", ReplLoadDirectory("sales", "/d", {})),
    ("REPL LOAD sales INTO dr", ReplLoad(SALES, "dr", {})),
    ("REPL LOAD sales.'o'", ReplLoad(ReplicationPolicy("sales", ("o",), None), None, {})),
    ("REPL STATUS sales WITH ('a' = 'b')", ReplStatus("sales", {"a": "b"})),
    ("EXPORT TABLE sales.orders TO '/d'", ExportTable(ORDERS, {}, "/d")),
    ("EXPORT TABLE t PARTITION (ds = '1', n = 02) TO '/d'", ExportTable(T, {"ds": "1", "n": "02"}, "/d")),
    ("IMPORT FROM '/d'", ImportTable(False, None, {}, "/d", None)),
    (
        "IMPORT EXTERNAL TABLE Sales.Orders PARTITION (ds = 'x') FROM '/d' LOCATION 's3://b/k'",
        ImportTable(True, ORDERS, {"ds": "x"}, "/d", "s3://b/k"),
    ),
    ("CREATE REMOTE TABLE t", CreateRemoteTable(False, T, None, None, {})),
    (
        "CREATE REMOTE TABLE IF NOT EXISTS t CONNECTED TO sales.orders VIA 'ssh' WITH TBLPROPERTIES ('k' = 'v')",
        CreateRemoteTable(True, T, ORDERS, "ssh", {"k": "v"}),
    ),
    (
        "CREATE REMOTE DATABASE shop CONNECTED TO sales WITH DBPROPERTIES ('k' = 'v')",
        CreateRemoteDatabase(False, "shop", "sales", None, {"k": "v"}),
    ),
    ("DROP REMOTE TABLE IF EXISTS t", DropRemoteTable(True, T)),
    ("DROP REMOTE DATABASE shop", DropRemoteDatabase(False, "shop")),
    ("ALTER REMOTE TABLE t SET TBLPROPERTIES ('k' = 'v')", SetTableProperties(T, {"k": "v"})),
    ("ALTER REMOTE DATABASE shop SET DBPROPERTIES ('k' = 'v')", SetDatabaseProperties("shop", {"k": "v"})),
    ("ALTER REMOTE TABLE t SET DATA COPY", SetRemoteData(T, "copy")),
    ("ALTER REMOTE TABLE t SET DATA none", SetRemoteData(T, "none")),
    ("SHOW REMOTE TABLES", ShowRemoteTables(None, None)),
    ("SHOW REMOTE TABLES IN shop LIKE 'o*'", ShowRemoteTables("shop", "o*")),
    ("SHOW REMOTE DATABASES LIKE 's*'", ShowRemoteDatabases("s*")),
    ("DESCRIBE REMOTE TABLE t", DescribeRemoteTable(False, T)),
    ("desc extended remote database shop", DescribeRemoteDatabase(True, "shop")),
    ("USE CLUSTER", UseCluster(None)),
    ("USE CLUSTER C1", UseCluster("C1")),
    ("SHOW CLUSTERS", ShowClusters()),
    ("SHOW CLUSTERS FOR t", ShowClustersOfTable(T)),
    ("EXPLAIN CLUSTER SELECT ';' FROM t", ExplainCluster("SELECT ';' FROM t")),
    (
        "ALTER TABLE t ADD SECONDARY CLUSTER c2 WHERE ds >= '2024' AND NOT n IN (1, 2)",
        AddSecondaryCluster(T, "c2", "ds >= '2024' AND NOT n IN (1, 2)"),
    ),
    ("ALTER TABLE t DROP SECONDARY CLUSTER c2", DropSecondaryCluster(T, "c2", None)),
    ("MARK SET DONE t PARTITION (ds = 20110228, region = 'us')", MarkSetDone(T, {"ds": "20110228", "region": "us"})),
    ("SHOW SETS DONE", ShowSetsDone(None, None)),
    ("SHOW SETS DONE AT dr", ShowSetsDone(None, "dr")),
    ("SHOW SETS DONE sales.orders AT dr", ShowSetsDone(ORDERS, "dr")),
    ("SHOW VERSIONS OF t AT dr", ShowVersions(T, "dr")),
]
FOR_ENGINES = [
    "SELECT 1",
    "(select 1)",
    "with x as (select ';') select * from x",
    "INSERT INTO at VALUES ('a')",
    "SHOW TABLES",
    "SHOW TABLES IN sales",
    "SHOW DATABASES",
    "show views in sales",
    "CREATE TABLE t (x INT)",
    "DROP TABLE t",
    "ALTER TABLE t ADD COLUMNS (x INT)",
    "ALTER TABLE at DROP PARTITION (ds = '1')",
    "DESCRIBE EXTENDED t",
    "DESCRIBE `remote`",
    "EXPLAIN SELECT 1",
]


def statement_of(text: str, *parameters: Parameter) -> Statement:
    (parsed,) = parse(text, parameters)
    return parsed.statement


@pytest.mark.parametrize(("text", "statement"), SAID, ids=[text for text, _ in SAID])
def test_a_text_says_its_statement(text: str, statement: Statement) -> None:
    assert statement_of(text) == statement


@pytest.mark.parametrize("text", FOR_ENGINES)
def test_what_begins_as_an_engine_s_statement_and_is_none_of_calque_s_own_is_kept_as_it_is(text: str) -> None:
    assert statement_of(text) == EngineStatement(text)


def test_every_form_has_an_example_of_its_kind() -> None:
    kinds = [form.kind for form in LANGUAGE.forms]
    assert {type(statement) for _, statement in SAID} == set(kinds)
    assert [type(statement_of(form.example)) for form in LANGUAGE.forms] == kinds


def test_every_form_but_help_has_an_executor_of_its_kind() -> None:
    found = {}
    for plugin in (KERNEL, *(plugin.statements() for plugin in APP.plugins)):
        for kind, run in plugin.executors().by_kind.items():
            found[kind] = next(iter(get_type_hints(run).values()))
    assert found == {form.kind: form.kind for form in LANGUAGE.forms if form.kind is not Help}


def test_every_form_names_the_keywords_of_its_example() -> None:
    for form in LANGUAGE.forms:
        keywords = set(re.findall(r"[A-Z]{2,}", form.example)) - {"SELECT"}
        assert keywords <= set(re.findall(r"[A-Z]+", form.syntax)), form.syntax


def test_forms_are_chosen_by_how_they_begin_in_any_case() -> None:
    assert [form.syntax for form in LANGUAGE.forms_of("show epochs")] == ["SHOW EPOCHS [AT target]"]
    assert LANGUAGE.forms_of("") == LANGUAGE.forms
    assert LANGUAGE.forms_of("SHOW TABLE") == ()


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", ()),
        (" ;; -- SHOW TARGETS;\n /* USE x; */ ", ()),
        ("USE a", ("USE a",)),
        ("\nUSE a ; -- then\nUSE b;", ("USE a", "USE b")),
        ("SHOW TABLES AT dr LIKE 'a;''b';USE `c;d`", ("SHOW TABLES AT dr LIKE 'a;''b'", "USE `c;d`")),
        ("SELECT 1 -- ;'\n + 2 /* ; */;", ("SELECT 1 -- ;'\n + 2",)),
        ("SELECT a-b/c", ("SELECT a-b/c",)),
    ],
)
def test_semicolons_between_statements_end_them(text: str, texts: tuple[str, ...]) -> None:
    assert tuple(parsed.text for parsed in parse(text)) == texts


def test_pieces_know_where_they_begin() -> None:
    assert split(" USE a; 'x") == ((Piece("USE a", 1),), Unclosed("'", 8))


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("USE a;", True),
        ("USE a; -- x", True),
        ("USE a; /* x */ \n", True),
        ("USE a", False),
        ("USE a; USE", False),
        ("USE 'a;", False),
        ("USE a; /* ;", False),
        ("USE a -- ;", False),
    ],
)
def test_a_text_is_complete_when_its_last_statement_has_its_semicolon(text: str, *, is_so: bool) -> None:
    assert is_complete(text) == is_so


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("''", ""),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r'"say \"it\'s\""', 'say "it\'s"'),
        ('"a""b"', 'a"b'),
        (r"'a\\b'", r"a\b"),
        (r"'a\nb\tc\rd'", "a\nb\tc\rd"),
        (r"'/\d+[.]\w\b/'", r"/\d+[.]\w\b/"),
        ("'a\nb -- c'", "a\nb -- c"),
    ],
)
def test_strings_have_the_escapes_of_hive_and_keep_other_backslashes(literal: str, value: str) -> None:
    assert statement_of(f"SHOW TABLES AT dr LIKE {literal}") == ShowTables("dr", value)


def test_parameters_stand_for_strings_numbers_and_targets() -> None:
    assert statement_of("SHOW TABLES AT ? LIKE ?", "d r", "it's") == ShowTables("d r", "it's")
    dump = ReplDump(SALES, None, 7, None, 3, {"k": "?"})
    assert statement_of("REPL DUMP sales FROM ? LIMIT ? WITH ('k' = '?')", 7, 3) == dump
    assert statement_of("MARK SET DONE t PARTITION (a = ?, b = ?)", "x", 1) == MarkSetDone(T, {"a": "x", "b": "1"})


@pytest.mark.parametrize(
    ("text", "parameters", "said"),
    [
        ("SHOW EPOCHS AT ?", (), "A ? has no value. Values come as parameters of a call. Give each ? a value."),
        (
            "SHOW EPOCHS AT ?",
            ("a", "b"),
            "2 values are given. 1 of them have no ? in the text. Give each ? a value.",
        ),
        (
            "SHOW EPOCHS AT ?",
            (1,),
            "The parameter 1 is no text. A string is needed in its place. Give a str.",
        ),
        (
            "REPL DUMP a LIMIT ?",
            ("1",),
            "The parameter '1' is no whole number. One is needed in its place. Give an int.",
        ),
        ("REPL STATUS a WITH ('k' = 'a', 'k' = 'b')", (), '"k" has two values. A key has one. Remove one of them.'),
    ],
)
def test_values_that_do_not_fit_are_refused(text: str, parameters: tuple[Parameter, ...], said: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text, parameters)
    assert (str(refused.value), refused.value.exit_code) == (said, 65)


FIRST = "Expected ALTER, CREATE, DESC, DESCRIBE, DROP, EXPLAIN, EXPORT, HELP, IMPORT, MARK, REPL, SHOW or USE."
MISREAD = [
    (
        "SHOW TARGTES",
        (
            'Line 1, column 6: "TARGTES" does not belong here. Expected CLUSTERS, EPOCHS, REMOTE, SETS, TABLES, '
            "TARGETS or VERSIONS. The nearest is TARGETS."
        ),
        ["  SHOW TARGTES", "       ^"],
    ),
    (
        "SELEC 1",
        f'Line 1, column 1: "SELEC" does not belong here. {FIRST} The nearest is SELECT.',
        ["  SELEC 1", "  ^"],
    ),
    (
        "USE a;\n  SHOW TABLES\tAT dr # 'x';",
        (
            'Line 2, column 21: "#" does not belong here. Expected LIKE or the end of the statement. '
            "Write HELP to see all statements."
        ),
        ["    SHOW TABLES\tAT dr # 'x';", "               \t      ^"],
    ),
    (
        "SHOW EPOCHS AT -- dr\n;",
        "Line 1, column 15: The statement ends too early. Expected a name. Go on there.",
        ["  SHOW EPOCHS AT -- dr", "                ^"],
    ),
    (
        "SHOW EPOCHS SET",
        (
            'Line 1, column 13: "SET" does not belong here. Expected AT or the end of the statement. '
            "Write HELP to see all statements."
        ),
        ["  SHOW EPOCHS SET", "              ^"],
    ),
    (
        "USE",
        "Line 1, column 4: The statement ends too early. Expected CLUSTER or a name. Go on there.",
        ["  USE", "     ^"],
    ),
    (
        "REPL DUMP a FROM x",
        'Line 1, column 18: "x" does not belong here. Expected a number. Write HELP to see all statements.',
        ["  REPL DUMP a FROM x", "                   ^"],
    ),
    (
        "MARK SET DONE t PARTITION (a 'b')",
        'Line 1, column 30: "\'" does not belong here. Expected "=". Write HELP to see all statements.',
        ["  MARK SET DONE t PARTITION (a 'b')", "                               ^"],
    ),
    (
        "CREATE REMOTE TABEL t",
        'Line 1, column 15: "TABEL" does not belong here. Expected DATABASE or TABLE. The nearest is TABLE.',
        ["  CREATE REMOTE TABEL t", "                ^"],
    ),
    (
        "ALTER TABLE t ADD SECONDARY CLUSER c",
        'Line 1, column 29: "CLUSER" does not belong here. Expected CLUSTER. The nearest is CLUSTER.',
        ["  ALTER TABLE t ADD SECONDARY CLUSER c", "                              ^"],
    ),
    (
        "SHOW TABLES AT dr\nLIKE 'x;",
        "Line 2, column 6: ' has no end. Expected ' behind it. Write '.",
        ["  LIKE 'x;", "       ^"],
    ),
    ("USE a /* x", "Line 1, column 7: /* has no end. Expected */ behind it. Write */.", ["  USE a /* x", "        ^"]),
    (
        "\x1b[2J",
        f'Line 1, column 1: "?" does not belong here. {FIRST} Write HELP to see all statements.',
        ["  ?[2J", "  ^"],
    ),
    (
        f"USE a /*{'y' * 50}*/ {'b' * 60}",
        (
            f'Line 1, column 62: "{"b" * 40}…" does not belong here. Expected the end of the statement. '
            "Write HELP to see all statements."
        ),
        [f"  …{'y' * 37}*/ {'b' * 40}…", f"  {' ' * 41}^"],
    ),
]


@pytest.mark.parametrize(("text", "said", "excerpt"), MISREAD, ids=[text[:40] for text, _, _ in MISREAD])
def test_a_text_that_says_nothing_is_answered_with_the_place_and_what_belongs_there(
    text: str, said: str, excerpt: list[str]
) -> None:
    with pytest.raises(StatementSyntaxError) as error:
        parse(text)
    assert (str(error.value), error.value.excerpt.split("\n"), error.value.exit_code) == (said, excerpt, 64)


def test_the_page_on_statements_shows_an_error_as_it_is() -> None:
    page = ROOT / "docs" / "statements.md"
    _, said, excerpt = MISREAD[0]
    assert "\n".join(["```text", f"calque: {said}", *excerpt, "```"]) in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("SHOW ", ["CLUSTERS", "EPOCHS", "REMOTE", "SETS", "TABLES", "TARGETS", "VERSIONS"]),
        ("SHOW EPOCHS AT ", ["backup", "dr"]),
        ("USE a; show tables at dr ", ["LIKE"]),
        ("SHOW NOTHING ", []),
        ("SHOW TABLES AT dr LIKE 'x", []),
    ],
)
def test_what_may_follow_is_completed(before: str, words: list[str]) -> None:
    assert completions(before, ["dr", "backup"]) == words


def test_a_statement_begins_with_any_of_the_first_words() -> None:
    assert set(completions("", [])) == {form.syntax.split()[0] for form in LANGUAGE.forms} | {"DESC"}


def test_values_of_a_statement_for_an_engine_go_with_it() -> None:
    text = "SELECT ?, '?', `?` /* ? */ FROM t WHERE x=? -- ?"
    [parsed] = parse(text, ("a", 1))
    assert parsed.statement == EngineStatement(text[: -len(" -- ?")], ("a", 1))
    [first, second] = parse("SELECT ?; SHOW EPOCHS AT ?", (1, "dr"))
    assert (first.statement, second.statement) == (EngineStatement("SELECT ?", (1,)), ShowEpochs("dr"))
    with pytest.raises(Refused, match="1 of them have no"):
        parse("SELECT ?", (1, 2))
