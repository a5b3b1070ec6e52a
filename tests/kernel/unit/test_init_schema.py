"""The file that `calque init` writes names its schema, for editors."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from jsonschema import Draft202012Validator

from calque.cli import main


def test_the_first_line_of_the_file_leads_to_a_schema_that_takes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "calque.toml"
    assert main(["init", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    word, address = text.splitlines()[0].split(" ")
    assert (word, urlsplit(address).scheme) == ("#:schema", "file")
    schema = json.loads(Path(url2pathname(urlsplit(address).path)).read_text(encoding="utf-8"))
    assert list(Draft202012Validator(schema).iter_errors(tomllib.loads(text))) == []
