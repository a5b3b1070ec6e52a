"""Where secret values stand, and that nothing but the place is ever shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError, model_validator

from calque.config.keys import Section
from calque.config.secret_keys import SecretFile, SecretVariable, one_secret
from calque.errors import Refused
from calque.model.secrets import FileSecret, Secret, VariableSecret, revealed, versions

VALUE = "geheim-7f3a"
"""Of the secrets; nothing but `read` may give it."""


class Door(Section):
    password_env: SecretVariable = None
    password_file: SecretFile = None

    @model_validator(mode="after")
    def _one_password(self) -> Door:
        self.password()
        return self

    def password(self) -> Secret | None:
        return one_secret("password", self.password_env, self.password_file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{VALUE}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def variable(monkeypatch: pytest.MonkeyPatch) -> VariableSecret:
    monkeypatch.setenv("CALQUE_TEST_PASSWORD", VALUE)
    return VariableSecret("CALQUE_TEST_PASSWORD")


def test_a_secret_reads_the_value_and_shows_and_pickles_its_place(file: Path, variable: VariableSecret) -> None:
    for secret in (FileSecret(str(file)), variable):
        assert secret.read() == VALUE
        assert VALUE not in f"{secret} {secret!r}"
        assert VALUE.encode() not in pickle.dumps(secret)
        assert pickle.loads(pickle.dumps(secret)) == secret


def test_a_file_is_read_anew_each_time_and_only_the_newline_at_its_end_is_no_part_of_it(file: Path) -> None:
    secret = FileSecret(str(file))
    assert [secret.read() for content in ("a\n", " b \r\n", "c") if file.write_text(content, newline="")] == [
        "a",
        " b ",
        "c",
    ]


def test_a_secret_that_is_not_there_is_refused_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("\n")
    binary.write_bytes(VALUE.encode() + b"\xff")
    monkeypatch.setenv("CALQUE_TEST_EMPTY", "")
    secrets = (
        VariableSecret("CALQUE_TEST_MISSING"),
        VariableSecret("CALQUE_TEST_EMPTY"),
        *(FileSecret(str(path)) for path in (tmp_path / "none", tmp_path, empty, binary)),
    )
    problems = []
    for secret in secrets:
        with pytest.raises(Refused) as caught:
            secret.read()
        assert VALUE not in f"{caught.value!r} {caught.value.__cause__!r}"
        problems.append(f"{caught.value.what}: {caught.value.why}".replace(str(tmp_path), "DIR"))
    assert problems == [
        "The environment variable CALQUE_TEST_MISSING is not set: A secret value comes from it",
        "The environment variable CALQUE_TEST_EMPTY is empty: A secret value comes from it",
        "The file DIR/none can't be read: A secret value comes from it: No such file or directory",
        "The file DIR can't be read: A secret value comes from it: Is a directory",
        "The file DIR/empty is empty: A secret value comes from it",
        "The file DIR/binary can't be read: A secret value comes from it: it is no UTF-8 text",
    ]


def test_a_file_that_others_may_read_is_known(file: Path) -> None:
    assert not FileSecret(str(file)).others_may_read()
    file.chmod(0o644)
    assert FileSecret(str(file)).others_may_read()


def test_options_are_revealed_with_the_values_of_the_moment_and_have_a_version_by_their_files(
    file: Path, variable: VariableSecret
) -> None:
    options = {"user": "calque", "password": FileSecret(str(file)), "token": variable}
    assert revealed(options) == {"user": "calque", "password": VALUE, "token": VALUE}
    before = versions(options)
    assert versions(options) == before
    file.write_text("another one\n")
    assert versions(options) != before
    assert revealed(options)["password"] == "another one"
    assert versions({"user": "calque", "token": variable}) == ()


def test_a_section_names_a_secret_by_a_variable_or_a_file_relative_to_its_own(
    file: Path, variable: VariableSecret
) -> None:
    context = {"base": file.parent}
    assert Door.model_validate({}, context=context).password() is None
    assert Door.model_validate({"password_env": "", "password_file": ""}, context=context).password() is None
    assert Door.model_validate({"password_env": variable.name}, context=context).password() == variable
    by_file = Door.model_validate({"password_file": "x/../password"}, context=context)
    assert by_file.password() == FileSecret(str(file))
    assert VALUE not in repr(by_file)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"password_env": "CALQUE_TEST_MISSING"}, "the environment variable CALQUE_TEST_MISSING is not set."),
        ({"password_file": "none"}, "none can't be read."),
        ({"password_file": 5}, "it has the wrong type."),
        ({"password_env": "CALQUE_TEST_PASSWORD", "password_file": "password"}, "password is given twice."),
    ],
)
def test_a_section_with_a_secret_that_is_not_there_is_refused(
    file: Path, variable: VariableSecret, keys: dict[str, object], problem: str
) -> None:
    assert variable.read() == VALUE
    with pytest.raises(ValidationError) as caught:
        Door.model_validate(keys, context={"base": file.parent})
    assert problem in str(caught.value)
    assert VALUE not in str(caught.value)
