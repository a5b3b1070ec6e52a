"""The interactive shell of `calque sql`: a semicolon ends a statement, the history stays, keywords are completed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory

from calque.errors import CalqueError, print_calque_error
from calque.statements.language import Language
from calque.statements.session import Session
from calque.statements.split import is_complete

PROMPT, CONTINUED = "calque> ", "     -> "
ENDS = re.compile(r"\s*(exit|quit)\s*;?\s*", re.IGNORECASE)
WORD = re.compile(r"[\w-]*\Z")


class StatementCompleter(Completer):
    """The completion of words at the cursor: keywords, and names of targets."""

    def __init__(self, language: Language, targets: Iterable[str]) -> None:
        self.language, self.targets = language, tuple(targets)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        match = WORD.search(document.text_before_cursor)
        word = match.group() if match else ""
        before = document.text_before_cursor.removesuffix(word)
        for text in self.language.completions(before, self.targets):
            if text.lower().startswith(word.lower()):
                yield Completion(text, start_position=-len(word))


def shell(session: Session, language: Language, history: Path, run: Callable[[str], object]) -> None:
    """Read texts, and hand each to `run` once it is complete, until the end of the input, `exit` or `quit`. An error is
    printed, and the shell goes on; Ctrl-C forgets what was written."""
    prompt: PromptSession[str] = PromptSession(
        message=PROMPT,
        prompt_continuation=CONTINUED,
        multiline=Condition(lambda: not is_to_run(get_app().current_buffer.text)),
        history=FileHistory(str(history)),
        completer=StatementCompleter(language, session.wiring.config.targets),
        complete_while_typing=False,
    )
    while True:
        try:
            text = prompt.prompt()
            if ENDS.fullmatch(text):
                return
            run(text)
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        except CalqueError as error:
            print_calque_error(error)


def is_to_run(text: str) -> bool:
    """Tell whether Enter ends the text: it is empty, or its last statement has its semicolon, or it ends the shell."""
    return not text.strip() or is_complete(text) or ENDS.fullmatch(text) is not None


def history_file() -> Path:
    """Return the file of the shell's history below `XDG_STATE_HOME`, made for its owner alone where it is missing."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "calque"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "history"
    file.touch(mode=0o600)
    return file
