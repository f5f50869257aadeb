"""Are tool calls well formed: named, parsed, valid, streamed and not, and can the result be replayed?

What must hold is the forced call (`required`, and a named choice): there the server itself constrains the answer, so a
malformed call is the server's fault. Under `auto` a small model may rightly answer in words; that is reported, not
judged, unless the streamed and the whole answer disagree. The schema closes its object (`additionalProperties: false`)
because an open one lets a valid call carry anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from jsonschema import Draft202012Validator

from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import number, whole
from orchestrator.gating.verdicts import not_answered, skip, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target, ToolCall

NAME = "get_weather"
SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city's name"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOL: Json = {
    "type": "function",
    "function": {"name": NAME, "description": "Current weather of a city", "parameters": SCHEMA, "strict": True},
}
ASK = "What is the weather in Paris, in celsius? Use the tool."
RESULT = {"city": "Paris", "temperature_c": 21, "sky": "clear"}
CHOICES: Mapping[str, Json] = {
    "required": "required",
    "named": {"type": "function", "function": {"name": NAME}},
    "auto": "auto",
}
FORCED = ("required", "named")
MORE_ROOM = 4
_VALIDATOR = Draft202012Validator(SCHEMA)


class Outcome(StrEnum):
    """What came of one request. CUT: the budget ended first."""

    OK = "ok"
    NO_CALL = "no call"
    CUT = "cut off"
    REFUSED = "refused"
    BROKEN = "broken"
    WRONG_NAME = "wrong name"
    NOT_JSON = "arguments are not JSON"
    INVALID = "arguments break the schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request: its tool choice, streamed or not, and what came of it. `detail`: the offending words."""

    choice: str
    is_streamed: bool
    outcome: Outcome
    detail: str = ""

    def __str__(self) -> str:
        how = "streamed" if self.is_streamed else "whole"
        return f"{self.choice} {how}: {self.outcome}{f' ({self.detail})' if self.detail else ''}"


def read_call(reply: Reply) -> tuple[Outcome, str]:
    """What a reply holds, and the words that show it. Every call in it must be good."""
    if not reply.is_ok:
        # 4xx: the server does not take such a request. 5xx or an error in the stream: it broke while answering.
        outcome = Outcome.REFUSED if 400 <= reply.http_status < 500 else Outcome.BROKEN
        return outcome, f"HTTP {reply.http_status}: {reply.error}"
    if not reply.tool_calls:
        if reply.finish_reason == "length":
            return Outcome.CUT, f"{reply.usage.output_tok} tokens"
        return Outcome.NO_CALL, ""
    for call in reply.tool_calls:
        outcome, detail = _read_one(call)
        if outcome is not Outcome.OK:
            is_cut = outcome is Outcome.NOT_JSON and reply.finish_reason == "length"
            return (Outcome.CUT, detail) if is_cut else (outcome, detail)
    return Outcome.OK, ""


def _read_one(call: ToolCall) -> tuple[Outcome, str]:
    if call.name != NAME:
        return Outcome.WRONG_NAME, repr(call.name)
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return Outcome.NOT_JSON, repr(call.arguments[:120])
    error = next(iter(_VALIDATOR.iter_errors(arguments)), None)
    return (Outcome.OK, "") if error is None else (Outcome.INVALID, error.message[:160])


def judge(attempts: Sequence[Attempt], *, is_claimed: bool | None, second_turn: str | None) -> Verdict:
    """Judge all attempts.

    Args:
        is_claimed: The profile's word on tools; None: it says nothing.
        second_turn: What went wrong when the result was replayed; None: it was answered, or no call came to replay.
    """
    measured: dict[str, Json] = {
        "attempts": [str(a) for a in attempts],
        "second_turn": second_turn or ("answered" if any(a.outcome is Outcome.OK for a in attempts) else None),
    }
    verdict = (
        _undecided(attempts, is_claimed)
        or _forced(attempts)
        or _replay(second_turn)
        or _automatic(attempts)
        or Verdict(status=Status.PASS, summary=_good(attempts))
    )
    return replace(verdict, measured=measured)


def _undecided(attempts: Sequence[Attempt], is_claimed: bool | None) -> Verdict | None:
    forced = [a for a in attempts if a.choice in FORCED]
    silent = {Outcome.NO_CALL, Outcome.REFUSED}
    if is_claimed is None and all(a.outcome in silent for a in attempts):
        return skip("no tool call came, and nothing claims tools")
    cut = next((a for a in forced if a.outcome is Outcome.CUT), None)
    if cut is not None and all(a.outcome in {Outcome.OK, Outcome.CUT} for a in forced):
        return Verdict(
            status=Status.ERROR,
            summary=f"could not tell: reasoning used the budget; {cut}",
            hint="raise the gate's max_tokens, or turn thinking off",
        )
    return None


def _forced(attempts: Sequence[Attempt]) -> Verdict | None:
    forced = [a for a in attempts if a.choice in FORCED]
    wrong = [a for a in forced if a.outcome not in {Outcome.OK, Outcome.REFUSED}]
    good = {a.choice for a in forced if a.outcome is Outcome.OK} - {a.choice for a in forced if a.outcome != Outcome.OK}
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return Verdict(status=Status.FAIL, summary=f"{wrong[0]}{more}", hint=_remedy(wrong[0]))
    refused = [a for a in forced if a.outcome is Outcome.REFUSED]
    if refused and good:
        return Verdict(
            status=Status.UNSTABLE,
            summary=f"{', '.join(sorted(good))} works; {refused[0]}",
            hint="agents that use this tool choice will be refused",
        )
    if refused:
        return Verdict(
            status=Status.FAIL,
            summary=str(refused[0]),
            hint="name the model's tool parser in the profile (`tool_call_parser`), or claim no tools",
        )
    return None


def _replay(second_turn: str | None) -> Verdict | None:
    if second_turn is None:
        return None
    return Verdict(
        status=Status.FAIL,
        summary=f"the tool's result cannot be replayed: {second_turn}",
        hint="the chat template must take a `tool` message after the call; see `chat_template`",
    )


def _automatic(attempts: Sequence[Attempt]) -> Verdict | None:
    auto = {a.is_streamed: a for a in attempts if a.choice == "auto"}
    if len(auto) < 2 or auto[True].outcome is auto[False].outcome:
        both = next(iter(auto.values()), None)
        if both is None or both.outcome in {Outcome.OK, Outcome.NO_CALL}:
            return None
        return Verdict(status=Status.UNSTABLE, summary=f"forced calls are well formed; {both}")
    bad = next(a for a in auto.values() if a.outcome is not Outcome.OK)
    if auto[False].outcome is Outcome.OK and bad.outcome not in {Outcome.NO_CALL, Outcome.CUT}:
        return Verdict(
            status=Status.FAIL,
            summary=f"the streamed call differs from the whole one; {bad}",
            hint="the streaming tool parser loses or changes text; see the engine's issues for this parser",
        )
    return Verdict(status=Status.UNSTABLE, summary=f"auto differs between streamed and whole; {bad}")


def _good(attempts: Sequence[Attempt]) -> str:
    called = any(a.choice == "auto" and a.outcome is Outcome.OK for a in attempts)
    auto = "called the tool" if called else "made no call"
    return f"required and named calls are well formed, streamed and not; auto {auto}; result replayed"


def _remedy(attempt: Attempt) -> str:
    if attempt.outcome is Outcome.NO_CALL:
        return "a forced choice gave no call: see the tool parser and the chat template"
    if attempt.outcome is Outcome.CUT:
        return "raise the gate's max_tokens, or turn thinking off"
    return "compare with the other tool parsers of this engine, and with speculation off"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallGate:
    """The gate."""

    name: str = "tool_call"
    title: str = "tool calls are well formed"
    defaults: Mapping[str, Json] = field(default_factory=lambda: {"max_tokens": 512, "timeout_s": 600.0})

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Force and offer the call, streamed and not; replay the result; judge."""
        claims = target.claims
        if (skipped := skip_unless_generating(claims)) is not None:
            return skipped
        if claims.tools is False:
            return skip("no tool parser is declared")
        max_tokens, timeout_s = whole(params, "max_tokens"), number(params, "timeout_s")
        evidence: list[Mapping[str, Json]] = []
        attempts: list[Attempt] = []
        called: Reply | None = None
        for choice in CHOICES:
            for is_streamed in (False, True):
                body, reply = _ask(target, choice, is_streamed, max_tokens=max_tokens, timeout_s=timeout_s)
                evidence.append(exchange(f"{choice} {'streamed' if is_streamed else 'whole'}", body, reply))
                if reply.http_status == 0:
                    return not_answered(choice, reply, evidence=tuple(evidence))
                outcome, detail = read_call(reply)
                attempts.append(Attempt(choice=choice, is_streamed=is_streamed, outcome=outcome, detail=detail))
                if outcome is Outcome.OK and called is None:
                    called = reply
        second_turn = None
        if called is not None:
            body = _second_turn(called.tool_calls, max_tokens)
            reply = target.chat(body, timeout_s=timeout_s)
            evidence.append(exchange("second turn", body, reply))
            second_turn = _replay_problem(reply)
        verdict = judge(attempts, is_claimed=claims.tools, second_turn=second_turn)
        return replace(verdict, evidence=tuple(evidence))


def _ask(
    target: Target, choice: str, is_streamed: bool, *, max_tokens: int, timeout_s: float
) -> tuple[Mapping[str, Json], Reply]:
    """The request and its reply; once more with more room when reasoning used the budget."""
    for room in (max_tokens, MORE_ROOM * max_tokens):
        body: Mapping[str, Json] = {
            "messages": [{"role": "user", "content": ASK}],
            "tools": [TOOL],
            "tool_choice": CHOICES[choice],
            "max_tokens": room,
        }
        reply = target.chat(body, stream=is_streamed, timeout_s=timeout_s)
        if read_call(reply)[0] is not Outcome.CUT:
            break
    return body, reply


def _second_turn(calls: Sequence[ToolCall], max_tokens: int) -> Mapping[str, Json]:
    ids = [call.id or f"call_{i}" for i, call in enumerate(calls)]
    replayed: list[Json] = [
        {"id": i, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for i, c in zip(ids, calls, strict=True)
    ]
    results: list[Json] = [{"role": "tool", "tool_call_id": i, "content": json.dumps(RESULT)} for i in ids]
    return {
        "messages": [
            {"role": "user", "content": ASK},
            {"role": "assistant", "content": "", "tool_calls": replayed},
            *results,
        ],
        "tools": [TOOL],
        "max_tokens": max_tokens,
    }


def _replay_problem(reply: Reply) -> str | None:
    if not reply.is_ok:
        return f"HTTP {reply.http_status}: {reply.error}"
    if not (reply.text.strip() or reply.reasoning.strip() or reply.tool_calls):
        return "an empty answer"
    return None


GATE = ToolCallGate()
