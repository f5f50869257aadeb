"""What the kinds' scripts have in common: the table of texts, the body's shape, warm-up, and who writes which."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.sweep.prompts import Fresh, PromptBook
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Message, Phase, Track
from orchestrator.sweep.workload import Cell, Kind
from orchestrator.values import Json

WARMUP = "warmup"
WARMUP_OUTPUT_TOK = 16
TEMPLATE_TAIL_TOK = 5
"""Template tokens behind the user's words, from 1 to about 9 by template: within one unit of a cache."""
MODULES = {
    Kind.CLOSED: "grid",
    Kind.BATCH: "grid",
    Kind.INGEST: "grid",
    Kind.SWARM: "swarm",
    Kind.OPEN: "open",
    Kind.OVERLOAD: "overload",
    Kind.SESSIONS: "sessions",
    Kind.REPLAY: "replay",
    Kind.MIXED: "mixed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One repeat of a cell: phases, and the texts that their messages refer to by number.

    `notes`: what was asked for and is not in it, for the record.
    """

    texts: tuple[str, ...]
    phases: tuple[Phase, ...]
    notes: tuple[str, ...] = ()


ScriptWriter = Callable[[Cell, PromptBook, LoadTarget, int], Script]


def script_of(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """Write the script of one repeat; asks the server how long texts are, through the book.

    Raises:
        InputError: A length asked for is less than what template and nonce take.
        TargetError: The server's counts make no sense.
    """
    module = importlib.import_module(f"orchestrator.sweep.scripts.{MODULES[cell.kind]}")
    writer: ScriptWriter = module.script
    return writer(cell, book, target, repeat)


class Texts:
    """The table under construction: each text once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def ref(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def table(self) -> tuple[str, ...]:
        return tuple(self._numbers)


def user(texts: Texts, fresh: Fresh) -> Message:
    """A fresh prompt as the user's message: nonce, then the passage by reference."""
    return Message(parts=(fresh.nonce, texts.ref(fresh.text)))


def fresh_job(texts: Texts, fresh: Fresh, target: LoadTarget, *, output_tok: int, think_s: float = 0.0) -> Job:
    """One request that no cache has seen."""
    return Job(
        messages=(user(texts, fresh),),
        output_tok=output_tok,
        think_s=think_s,
        expected_prompt_tok=fresh.prompt_tok,
        expected_cached_tok=expected_cached_tok(target),
        nonce=fresh.nonce,
    )


def body_of(cell: Cell, target: LoadTarget, **changes: Json) -> Mapping[str, Json]:
    """The lane's `BodyShape` fields."""
    w = cell.workload
    return {
        "endpoint": w.endpoint,
        "model": target.model,
        "temperature": w.temperature,
        "ignore_eos": w.ignore_eos,
        "thinking": w.thinking,
        "tools": w.tools,
        "tool_choice": target.tool_choice,
        "length_fields": dict(target.length_fields),
        "stream_fields": dict(target.stream_fields),
        "extra": dict(w.extra_body),
        **changes,
    }


def warmup_phase(
    cell: Cell, book: PromptBook, texts: Texts, target: LoadTarget, *, prompt_tok: int | None = None
) -> tuple[Phase, ...]:
    """Unrecorded short answers at the cell's own concurrency; none where the workload wants none."""
    n = cell.workload.warmup
    if not n:
        return ()
    output_tok = min(WARMUP_OUTPUT_TOK, cell.output_tok)
    jobs = [
        fresh_job(texts, book.fresh(prompt_tok or cell.prompt_tok), target, output_tok=output_tok) for _ in range(n)
    ]
    lane = Lane(tracks=single_tracks(jobs), users=max(1, cell.concurrency), body=body_of(cell, target))
    return (Phase(name=WARMUP, lanes=(lane,), is_recorded=False),)


def single_tracks(jobs: Sequence[Job]) -> tuple[Track, ...]:
    """Each job a track of its own, numbered in order."""
    return tuple(Track(jobs=(job,), number=i) for i, job in enumerate(jobs))


def shared_head_tok(prompt_tok: int, cell: Cell, target: LoadTarget) -> int:
    """Tokens that a prompt of `prompt_tok` shares with one that goes on behind its user's words: all of it but the
    template's end."""
    if cell.workload.endpoint != "chat":
        return prompt_tok
    overhead_tok = target.template_overhead_tok
    tail_tok = TEMPLATE_TAIL_TOK if overhead_tok is None else min(TEMPLATE_TAIL_TOK, overhead_tok)
    return max(0, prompt_tok - tail_tok)


def expected_cached_tok(target: LoadTarget) -> int | None:
    """Cached tokens a fresh prompt may show: the template before the nonce, in whole cache units."""
    if target.template_overhead_tok is None:
        return None
    return target.template_overhead_tok // target.cache_unit_tok * target.cache_unit_tok
