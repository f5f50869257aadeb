"""Do the answers make sense? Three trivial questions, alone and again at the same time.

Garbage that shows only under concurrency (wrong cache lanes, broken batch kernels) is as real as garbage at rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import items, number, whole
from orchestrator.gating.sizing import user
from orchestrator.gating.verdicts import not_answered, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

QUESTIONS: tuple[Mapping[str, Json], ...] = (
    {"ask": "What is 2+2? Answer with a number.", "accept": ["4", "four"]},
    {"ask": "What is the capital of France? Answer in one short sentence.", "accept": ["Paris"]},
    {"ask": "Name the planet we live on.", "accept": ["Earth"]},
)
MORE_ROOM = 4
"""When thinking used the whole budget, the question is asked once more with this many times the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question's answer. `is_cut`: the budget ended before any answer text."""

    ask: str
    text: str
    is_right: bool
    is_cut: bool = False


def is_accepted(text: str, accept: Sequence[str]) -> bool:
    """True when one of the accepted words stands in the text as a whole word, in any case."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in accept)


def judge(alone: Sequence[Answer], together: Sequence[Answer], *, concurrency: int) -> Verdict:
    """Judge the answers given alone and those given at the same time."""
    measured: dict[str, Json] = {
        "alone_right": sum(a.is_right for a in alone),
        "alone_asked": len(alone),
        "together_right": sum(a.is_right for a in together),
        "together_asked": len(together),
        "concurrency": concurrency,
    }
    everything = [*alone, *together]
    if any(a.is_cut for a in everything) and all(a.is_right or a.is_cut for a in everything):
        return Verdict(
            status=Status.ERROR,
            summary="could not tell: the token budget ended before an answer came",
            measured=measured,
            hint="raise the gate's max_tokens, or turn thinking off",
        )
    wrong = next((a for a in alone if not a.is_right), None)
    if wrong is not None:
        return Verdict(
            status=Status.FAIL,
            summary=f"wrong when asked alone: {wrong.ask!r} was answered {_short(wrong.text)!r}",
            measured=measured,
        )
    wrong = next((a for a in together if not a.is_right), None)
    if wrong is not None:
        return Verdict(
            status=Status.FAIL,
            summary=f"right alone, wrong at concurrency {concurrency}: "
            f"{wrong.ask!r} was answered {_short(wrong.text)!r}",
            measured=measured,
            hint="answers break under load: compare with speculation off and with another attention backend",
        )
    return Verdict(
        status=Status.PASS,
        summary=f"{len(alone)} of {len(alone)} right alone, {len(together)} of {len(together)} "
        f"at concurrency {concurrency}",
        measured=measured,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coherence:
    """The gate. `questions`: mappings with `ask` and the list `accept`; they are answered in some way or another."""

    name: str = "coherence"
    title: str = "trivial questions are answered, alone and together"
    defaults: Mapping[str, Json] = field(
        default_factory=lambda: {
            "questions": [dict(q) for q in QUESTIONS],
            "concurrency": 4,
            "max_tokens": 512,
            "timeout_s": 600.0,
        }
    )

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Ask alone, ask together, judge."""
        if (skipped := skip_unless_generating(target.claims)) is not None:
            return skipped
        questions = [_question(q) for q in items(params, "questions")]
        concurrency, timeout_s = whole(params, "concurrency"), number(params, "timeout_s")
        evidence: list[Mapping[str, Json]] = []
        alone: list[Answer] = []
        room = whole(params, "max_tokens")
        for ask, accept in questions:
            body = _body(ask, room)
            reply = target.chat(body, timeout_s=timeout_s)
            if reply.is_ok and _is_cut(reply) and room == whole(params, "max_tokens"):
                # From here on for all questions: what thinks once thinks always.
                room *= MORE_ROOM
                body = _body(ask, room)
                reply = target.chat(body, timeout_s=timeout_s)
            evidence.append(exchange("alone", body, reply))
            if not reply.is_ok:
                return not_answered(f"{ask!r} alone", reply, evidence=tuple(evidence))
            alone.append(_answer(ask, reply, accept))
        picked = [questions[i % len(questions)] for i in range(concurrency)]
        bodies = [_body(ask, room) for ask, _ in picked]
        replies = target.chat_many(bodies, timeout_s=timeout_s)
        evidence += [exchange("together", b, r) for b, r in zip(bodies, replies, strict=True)]
        for (ask, _), reply in zip(picked, replies, strict=True):
            if not reply.is_ok:
                return not_answered(f"{ask!r} at concurrency {concurrency}", reply, evidence=tuple(evidence))
        together = [_answer(ask, r, accept) for (ask, accept), r in zip(picked, replies, strict=True)]
        verdict = judge(alone, together, concurrency=concurrency)
        return replace(verdict, evidence=tuple(evidence))


def _question(raw: Json) -> tuple[str, tuple[str, ...]]:
    ask = raw.get("ask") if isinstance(raw, Mapping) else None
    accept = raw.get("accept") if isinstance(raw, Mapping) else None
    if not isinstance(ask, str) or not isinstance(accept, list):
        raise TypeError(f"questions: a mapping with `ask` and a list `accept` is expected, not {raw!r}")
    return ask, tuple(str(word) for word in accept)


def _body(ask: str, max_tokens: int) -> Mapping[str, Json]:
    return {"messages": user(ask), "max_tokens": max_tokens}


def _is_cut(reply: Reply) -> bool:
    return not reply.text.strip() and reply.finish_reason == "length"


def _answer(ask: str, reply: Reply, accept: Sequence[str]) -> Answer:
    return Answer(ask=ask, text=reply.text, is_right=is_accepted(reply.text, accept), is_cut=_is_cut(reply))


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:60]}…"


GATE = Coherence()
