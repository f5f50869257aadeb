"""Run a cell, repeat by repeat: write its script, start the load process, follow it, judge what it brought."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from orchestrator.sweep.body import BodyShape, prompt_fields
from orchestrator.sweep.counting import TOOL_FIELDS, token_counter, tool_choice
from orchestrator.sweep.outcome import CellOutcome, Heard, Lap, cell_outcome
from orchestrator.sweep.process import LoadFailed, LoadProcess
from orchestrator.sweep.prompts import PromptBook
from orchestrator.sweep.scripts import Script, script_of
from orchestrator.sweep.scripts.script import body_of
from orchestrator.sweep.spec import CellProgress, LoadSpec, LoadTarget
from orchestrator.sweep.truth import Counters, read_calm, read_counters
from orchestrator.sweep.workload import Cell, Workload
from orchestrator.values import Json, digest, utc_now
from orchestrator.wire.chat import Claims
from orchestrator.wire.target import HttpTarget

__all__ = [
    "CellOutcome",
    "CellProgress",
    "CellRunner",
    "Lap",
    "LoadFailed",
    "LoadProcess",
    "LoadTarget",
    "load_spec",
    "run_cell",
]

TOOLS_OFFERED = "the server shows the model its tools only if it may call them: `tool_choice` is auto"
TOOLS_UNSEEN = "the tools are in no prompt as far as the server's count tells"
SETTLE_S = 1.5
SETTLE_POLL_S = 0.05
AUDIT_EVERY = 8
AUDIT_BELOW = 8
"""Up to so many users each connection reads kernel stamps: one in eight would be none."""


def _never() -> bool:
    return False


def _ignore(progress: CellProgress) -> None:
    pass


class FitCancelled(Exception):
    """Cancelled while prompts were being fitted; never leaves this module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A server that was asked how it counts. `tool_choice`, `note`: how tools come into its prompts, where wanted."""

    control: HttpTarget
    book: PromptBook
    tool_choice: str = "none"
    note: str = ""


class CellRunner:
    """Runs repeats of many cells against a server that is asked for each prompt length once.

    Use one for each sweep: `with CellRunner() as runner: lap = runner(target, cell, repeat, …)`.

    Args:
        rng: Source of the nonces; the default is never the same twice.
        backend: `own` or `aiohttp`.
        book: Prompts from here instead: the server is asked for no lengths.
        process: What runs the load of one repeat.
    """

    def __init__(
        self,
        *,
        rng: random.Random | None = None,
        backend: str = "own",
        book: PromptBook | None = None,
        process: Callable[[LoadSpec], LoadProcess] = LoadProcess,
    ) -> None:
        self._rng = rng
        self._book = book
        self._backend = backend
        self._process = process
        self._asked: dict[str, _Asked] = {}
        self._is_cancelled: Callable[[], bool] = _never

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for asked in self._asked.values():
            asked.control.close()
        self._asked.clear()

    def __call__(
        self,
        target: LoadTarget,
        cell: Cell,
        repeat: int = 0,
        on_progress: Callable[[CellProgress], None] = _ignore,
        is_cancelled: Callable[[], bool] = _never,
    ) -> Lap:
        """One repeat to its end, or until `is_cancelled` says so (the lap then says it was).

        Args:
            on_progress: Called about five times a second, from this thread.

        Raises:
            InputError: The prompt length asked for is less than the chat template takes.
            LoadFailed: The load process died or hung.
        """
        self._is_cancelled = is_cancelled
        started_at, start_s = utc_now(), time.monotonic()
        try:
            fitted, script = self.script(target, cell, repeat)
        except FitCancelled:
            return Lap.cancelled(repeat, started_at=started_at)
        control = self._ask(fitted, cell).control
        heard, spec = Heard(), load_spec(fitted, cell, script, repeat=repeat, backend=self._backend)
        before = read_calm(control, fitted.metrics)
        with self._process(spec) as process:
            for message in process.messages(is_cancelled):
                heard.take(message, on_progress)
        after = self._settled(control, fitted.metrics, before, heard)
        lap = heard.lap(
            repeat,
            started_at=started_at,
            duration_s=time.monotonic() - start_s,
            before=before,
            after=after,
            template_overhead_tok=fitted.template_overhead_tok,
        )
        return replace(lap, record={**lap.record, "backend": self._backend, "notes": list(script.notes)})

    def script(self, target: LoadTarget, cell: Cell, repeat: int) -> tuple[LoadTarget, Script]:
        """The repeat's script, and the target with what was learned of its template."""
        asked = self._ask(target, cell)
        if target.template_overhead_tok is None:
            target = replace(target, template_overhead_tok=asked.book.overhead_tok)
        target = replace(target, tool_choice=asked.tool_choice)
        script = script_of(cell, asked.book, target, repeat)
        return target, replace(script, notes=(*script.notes, asked.note)) if asked.note else script

    def _ask(self, target: LoadTarget, cell: Cell) -> _Asked:
        w = cell.workload
        shape = BodyShape(**body_of(cell, target, tool_choice="none"))  # type: ignore[arg-type]
        fields: dict[str, Json] = {**prompt_fields(shape), **_of_template(w.extra_body)}
        key = digest([target.base_url, target.model, w.endpoint, w.seed, dict(fields)])
        if key not in self._asked:
            control = HttpTarget(target.base_url, target.model, Claims(engine="endpoint"), api_key=target.api_key)
            self._asked[key] = self._book_of(control, w, fields)
        return self._asked[key]

    def _book_of(self, control: HttpTarget, w: Workload, fields: dict[str, Json]) -> _Asked:
        if self._book is not None:
            return _Asked(control=control, book=self._book)
        if not w.tools or w.endpoint != "chat" or fields.keys() & w.extra_body.keys() & TOOL_FIELDS:
            return _Asked(control=control, book=self._new_book(control, w, fields))
        choice = tool_choice(control, fields)
        fields["tool_choice"] = choice or "none"
        note = "" if choice == "none" else TOOLS_OFFERED if choice else TOOLS_UNSEEN
        book = self._new_book(control, w, fields)
        return _Asked(control=control, book=book, tool_choice=choice or "none", note=note)

    def _new_book(self, control: HttpTarget, w: Workload, fields: Mapping[str, Json]) -> PromptBook:
        counter = token_counter(control, endpoint=w.endpoint, fields=fields, timeout_s=w.request_timeout_s)
        return PromptBook(replace(counter, count=self._stoppable(counter.count)), seed=w.seed, rng=self._rng)

    def _stoppable(self, count: Callable[[str], int | None]) -> Callable[[str], int | None]:
        def asked(text: str) -> int | None:
            if self._is_cancelled():
                raise FitCancelled
            return count(text)

        return asked

    def _settled(
        self, control: HttpTarget, names: Mapping[str, str], before: Counters | None, heard: Heard
    ) -> Counters | None:
        """The counters once they have caught up with what was answered: engines update them after the last byte."""
        found = read_counters(control, names)
        deadline_s = time.monotonic() + SETTLE_S
        while before is not None and found is not None and time.monotonic() < deadline_s:
            told = found.get("output_tok", 0.0) - before.get("output_tok", 0.0)
            if "output_tok" not in found or told >= heard.output_tok:
                break
            time.sleep(SETTLE_POLL_S)
            found = read_counters(control, names)
        return found


def run_cell(
    target: LoadTarget,
    cell: Cell,
    *,
    on_progress: Callable[[CellProgress], None] = _ignore,
    is_cancelled: Callable[[], bool] = _never,
    book: PromptBook | None = None,
    backend: str = "own",
) -> CellOutcome:
    """All repeats of one cell, one after the other; cancelled, it has those that were finished and status `cancelled`.

    Raises:
        InputError: The prompt length asked for is less than the chat template takes.
        LoadFailed: The load process died or hung.
    """
    laps: list[Lap] = []
    with CellRunner(book=book, backend=backend) as runner:
        for repeat in range(cell.workload.repeats):
            laps.append(runner(target, cell, repeat, on_progress, is_cancelled))
            if laps[-1].is_cancelled:
                break
    return cell_outcome(target, cell, laps)


def load_spec(target: LoadTarget, cell: Cell, script: Script, *, repeat: int = 0, backend: str = "own") -> LoadSpec:
    """What the load process needs to know."""
    w = cell.workload
    return LoadSpec(
        base_url=target.base_url,
        api_key=target.api_key,
        phases=script.phases,
        texts=script.texts,
        repeat=repeat,
        request_timeout_s=w.request_timeout_s,
        is_length_fixed=cell.is_length_fixed,
        must_finish=w.must_finish,
        audit=1 if 0 < cell.concurrency < AUDIT_BELOW else AUDIT_EVERY,
        backend=backend,
    )


def _of_template(extra: Mapping[str, Json]) -> dict[str, Json]:
    """The workload's own fields that change the prompt."""
    names = TOOL_FIELDS | {"chat_template_kwargs", "reasoning_effort"}
    return {k: v for k, v in extra.items() if k in names}
