"""The end of what a demo replicates: each target is waited for as long as there is headway, and compared then."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

from calque.commands import verify
from calque.commands.options import CommandSettings
from calque.config import Config
from calque.control.waiting import EventWait
from calque.demo.child import require_running
from calque.demo.headway import STILL_SECONDS, Headway
from calque.demo.outcome import Answer, TargetOutcome
from calque.demo.progress import Progress, View
from calque.errors import CalqueError
from calque.sandbox.processes import KeptProcess
from calque.wiring.wiring import Wiring

LOOK_SECONDS = 0.2


def settled(
    settings: CommandSettings,
    config: Config,
    wiring: Wiring,
    head: int,
    child: KeptProcess,
    progress: Progress,
    headway: Headway,
) -> dict[str, tuple[Answer, Answer]]:
    """Wait until each target shows event `head` and verify it. Return the answers of the wait and of `verify` by
    target."""
    answers = {}
    for name in config.targets:
        progress.say(f"Waiting until {name} shows event {head}")
        waited = _waited(EventWait(wiring, name, head), child, progress, headway)
        progress.say(f"Verifying {name}, every byte")
        answers[name] = waited, answer(partial(verify.run, settings, config, (name,), (), "checksum"))
    return answers


def _waited(wait: EventWait, child: KeptProcess, progress: Progress, headway: Headway) -> Answer:
    """Wait until a target shows an event, as long as there is headway, and return the answer as `calque wait` has
    it."""
    try:
        while not (waited := wait.look()).has_reached:
            require_running(child)
            if headway.still_seconds(progress.view, time.monotonic()) > STILL_SECONDS:
                raise wait.late(waited, STILL_SECONDS)
            time.sleep(LOOK_SECONDS)
    except CalqueError as error:
        return Answer(error.exit_code, {}, str(error))
    return Answer(0, {"target": wait.target, "event_id": wait.event_id, "position": waited.position})


def answer(command: Callable[[], int]) -> Answer:
    """Run a command in this process and return what it answers on stdout. Its progress on stderr is dropped, because it
    would disturb the demo's own."""
    output = io.StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(io.StringIO()):
            code = command()
    except CalqueError as error:
        return Answer(error.exit_code, {}, str(error))
    return Answer(code, json.loads(output.getvalue() or "{}"))


def outcomes_of(view: View, answers: Mapping[str, tuple[Answer, Answer]]) -> dict[str, TargetOutcome]:
    return {
        name: TargetOutcome(view.positions[name], view.work[name], wait_answer, verify_answer)
        for name, (wait_answer, verify_answer) in answers.items()
    }
