"""Run a cell: fit its prompts, start the load process, follow it, judge what it brought."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from orchestrator.sweep.counting import token_counter
from orchestrator.sweep.outcome import CellOutcome, Heard, cell_outcome
from orchestrator.sweep.process import LoadFailed, LoadProcess
from orchestrator.sweep.prompts import CellPrompts, Counter, PromptBook
from orchestrator.sweep.spec import CellProgress, LoadSpec, LoadTarget
from orchestrator.sweep.workload import Cell
from orchestrator.values import utc_now
from orchestrator.wire.chat import Claims
from orchestrator.wire.target import HttpTarget

__all__ = [
    "CellOutcome",
    "CellProgress",
    "CellRunner",
    "LoadFailed",
    "LoadProcess",
    "LoadTarget",
    "load_spec",
    "run_cell",
]


def _never() -> bool:
    return False


def _ignore(progress: CellProgress) -> None:
    pass


def run_cell(
    target: LoadTarget,
    cell: Cell,
    *,
    prompts: CellPrompts | None = None,
    on_progress: Callable[[CellProgress], None] = _ignore,
    is_cancelled: Callable[[], bool] = _never,
) -> CellOutcome:
    """Run one cell to its end, or until `is_cancelled` says so (then its status is `cancelled`).

    Args:
        prompts: None: fitted here, by asking the server (see `CellRunner`, which keeps the fits from cell to cell).
        on_progress: Called about five times a second, from this thread.

    Raises:
        InputError: The prompt length asked for is less than the chat template takes.
        LoadFailed: The load process died or hung.
    """
    started_at, start_s = utc_now(), time.monotonic()
    if prompts is None:
        with CellRunner() as runner:
            fitted = runner.fit(target, cell)
        target, prompts = fitted.target, fitted.prompts
    spec = load_spec(target, cell, prompts)
    heard = Heard()
    with LoadProcess(spec) as process:
        for message in process.messages(is_cancelled):
            heard.take(message, on_progress)
    return cell_outcome(target, cell, heard, started_at=started_at, duration_s=time.monotonic() - start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A cell's prompts, and the target with what was learned of its template."""

    target: LoadTarget
    prompts: CellPrompts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A server that was asked how it counts."""

    control: HttpTarget
    counter: Counter
    book: PromptBook


class CellRunner:
    """`run_cell` for many cells: a server is asked for each prompt length once.

    Use one for each sweep: `with CellRunner() as runner: runner(target, cell, on_progress, is_cancelled)`.

    Args:
        rng: Source of the nonces; the default is never the same twice.
    """

    def __init__(self, *, rng: random.Random | None = None) -> None:
        self._rng = rng
        self._asked: dict[tuple[str, str, str, int], _Asked] = {}

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
        on_progress: Callable[[CellProgress], None] = _ignore,
        is_cancelled: Callable[[], bool] = _never,
    ) -> CellOutcome:
        """As `run_cell`."""
        fitted = self.fit(target, cell)
        return run_cell(fitted.target, cell, prompts=fitted.prompts, on_progress=on_progress, is_cancelled=is_cancelled)

    def fit(self, target: LoadTarget, cell: Cell) -> Fitted:
        """Fit passages to the cell's length (once), draw its nonces (each time), learn the template's length.

        Raises:
            InputError: The prompt length asked for is less than the chat template takes.
        """
        w = cell.workload
        key = (target.base_url, target.model, w.endpoint, w.seed)
        if key not in self._asked:
            control = HttpTarget(target.base_url, target.model, Claims(engine="endpoint"), api_key=target.api_key)
            counter = token_counter(control, endpoint=w.endpoint)
            self._asked[key] = _Asked(
                control=control, counter=counter, book=PromptBook(counter, seed=w.seed, rng=self._rng)
            )
        asked = self._asked[key]
        prompts = asked.book.for_cell(cell, warmup=w.warmup)
        if target.template_overhead_tok is None:
            target = replace(target, template_overhead_tok=asked.counter.overhead_tok)
        return Fitted(target=target, prompts=prompts)


def load_spec(target: LoadTarget, cell: Cell, prompts: CellPrompts) -> LoadSpec:
    """What the load process needs to know."""
    w = cell.workload
    return LoadSpec(
        base_url=target.base_url,
        api_key=target.api_key,
        body={
            "endpoint": w.endpoint,
            "model": target.model,
            "output_tok": cell.output_tok,
            "temperature": w.temperature,
            "ignore_eos": w.ignore_eos,
            "length_fields": dict(target.length_fields),
            "stream_fields": dict(target.stream_fields),
            "extra": dict(w.extra_body),
        },
        concurrency=cell.concurrency,
        repeats=w.repeats,
        requests_per_repeat=cell.requests_per_repeat,
        request_timeout_s=w.request_timeout_s,
        passages=prompts.passages,
        nonces=prompts.nonces,
        warmup=w.warmup,
        expected_prompt_tok=cell.prompt_tok,
        expected_cached_tok=expected_cached_tok(target),
    )


def expected_cached_tok(target: LoadTarget) -> int | None:
    """Cached tokens a fresh prompt may show: the template before the nonce, in whole cache units."""
    if target.template_overhead_tok is None:
        return None
    return target.template_overhead_tok // target.cache_unit_tok * target.cache_unit_tok
