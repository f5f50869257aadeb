"""A gate's evidence, to be judged by eye: what was sent, what came back, the counters, the first differing token."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.records.record import GateRecord
from orchestrator.report.notebook.told import plain_words
from orchestrator.report.text import DASH, number
from orchestrator.values import Json

COUNTERS = (
    ("Prompt (tok)", "prompt_tok"),
    ("Cached (tok)", "cached_tok"),
    ("Out (tok)", "output_tok"),
)
TIMES = (("First token (s)", "first_token_s"), ("Total (s)", "total_s"))
SHOWN_CHARS = 90
OWN_COLUMNS = {"usage", "first_token_s", "total_s", "text", "logprobs", "timings", "http_status", "events"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text that may be long: `head` is shown, `whole` on demand; empty where the head is all."""

    head: str
    whole: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer.

    Attributes:
        figures: In the order of `GateEvidence.head`.
        against: The first differing token against the first answer to the same prompt, with its margin.
    """

    label: str
    sent: Text
    came: Text
    figures: tuple[str, ...]
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEvidence:
    """
    Attributes:
        measured: Names and words. tables: lists of alike things that were measured.
        head: Of the exchanges' figures. has_against: some answer has another to be compared with.
    """

    measured: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    params: tuple[tuple[str, str], ...]
    head: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    has_against: bool


def gate_evidence(gate: GateRecord) -> GateEvidence:
    shown = [e for e in gate.evidence if isinstance(e, Mapping) and "agreement" not in e]  # those have their own table
    columns = [c for c in (*COUNTERS, *TIMES) if any(_figure(e, c[1]) != DASH for e in shown)]
    exchanges = tuple(_exchanges(shown, [key for _, key in columns]))
    return GateEvidence(
        measured=tuple((k, plain_words(v)) for k, v in gate.measured.items() if not _is_table(v)),
        tables=tuple(_table(k, v) for k, v in gate.measured.items() if _is_table(v)),
        params=tuple((k, plain_words(v)) for k, v in gate.params.items()),
        head=tuple(head for head, _ in columns),
        exchanges=exchanges,
        has_against=any(e.against for e in exchanges),
    )


def text(value: str) -> Text:
    """Its first words, on one line; the whole where there is more."""
    line = " ".join(value.split())
    if len(line) <= SHOWN_CHARS:
        return Text(head=line, whole=value if value.strip() != line else "")
    return Text(head=f"{line[:SHOWN_CHARS].rsplit(' ', 1)[0]} …", whole=value)


def first_difference(a: Sequence[Mapping[str, Json]], b: Sequence[Mapping[str, Json]]) -> str:
    """Of two answers' tokens with their logprobs: where they part, the two tokens, and by how little.

    The margin is the logprob between those two tokens, the smaller of both answers, nats.
    """
    both = min(len(a), len(b))
    for place in range(both):
        own, other = a[place].get("token"), b[place].get("token")
        if own != other:
            margins = [m for m in (_margin(a[place], other), _margin(b[place], own)) if m is not None]
            margin = f", margin {min(margins):.3f} nats" if margins else ", margin unknown"
            return f"token {place + 1}: {other!r}, first {own!r}{margin}"
    return f"first {both} tokens the same" if both else ""


def _exchanges(shown: Sequence[Mapping[str, Json]], keys: Sequence[str]) -> Iterator[Exchange]:
    first: dict[str, Mapping[str, Json]] = {}
    for entry in shown:
        request, reply = _mapping(entry.get("request")), _mapping(entry.get("reply"))
        prompt = json.dumps([request.get("messages"), request.get("prompt")], sort_keys=True)
        before = first.setdefault(prompt, entry)
        label = str(entry.get("label") or "")
        yield Exchange(
            label=label,
            sent=_sent(request)
            if before is entry
            else Text(head=f"as {before.get('label')}{_changed(request, before)}"),
            came=_came(entry, reply),
            figures=tuple(_figure(entry, key) for key in keys),
            against="" if before is entry else first_difference(_tokens(_mapping(before.get("reply"))), _tokens(reply)),
        )


def _changed(request: Mapping[str, Json], before: Mapping[str, Json]) -> str:
    """What else was asked than the first time: `, without cache_prompt`."""
    old = _mapping(before.get("request"))
    new = [f"{k}={plain_words(v)}" for k, v in request.items() if k not in old or old[k] != v]
    gone = [f"without {k}={plain_words(v)}" for k, v in old.items() if k not in request]
    return "".join(f", {words}" for words in (*new, *gone))


def _sent(request: Mapping[str, Json]) -> Text:
    parts = [f"{m.get('role')}: {_content(m)}" for m in _mappings(request.get("messages"))]
    prompt = request.get("prompt")
    parts += [_excerpt(prompt)] if prompt is not None else []
    if len(parts) == 1:
        parts = [parts[0].removeprefix("user: ")]
    asked = {k: v for k, v in request.items() if k not in ("messages", "prompt")}
    found = text("\n\n".join(parts))
    rest = "\n".join(f"{k}: {plain_words(v)}" for k, v in asked.items())
    return Text(head=found.head, whole="\n\n".join(w for w in (found.whole or found.head, rest) if w))


def _came(entry: Mapping[str, Json], reply: Mapping[str, Json]) -> Text:
    words = _excerpt(reply.get("text")) if reply.get("text") is not None else ""
    status = reply.get("http_status")
    rest: dict[str, Json] = {k: v for k, v in reply.items() if k not in OWN_COLUMNS and v is not None and v != "stop"}
    rest |= {k: v for k, v in entry.items() if k not in ("label", "request", "reply")}
    timings = _mapping(reply.get("timings"))
    found = text(words or (f"no text, HTTP {status}" if status not in (None, 200) else "no text"))
    lines = [f"{k}: {_excerpt(v)}" for k, v in rest.items()]
    lines += [f"server: {plain_words(dict(timings))}"] if timings else []
    more = "\n".join(lines)
    return Text(
        head=found.head, whole="\n\n".join(w for w in (found.whole or found.head, more) if w) if more else found.whole
    )


def _content(message: Mapping[str, Json]) -> str:
    words = _excerpt(message.get("content"))
    calls = message.get("tool_calls")
    return f"{words} {plain_words(calls)}".strip() if calls else words


def _excerpt(value: Json) -> str:
    """A text, or what is kept of a long one."""
    if isinstance(value, Mapping) and {"head", "tail", "chars"} <= set(value):
        left = value["chars"]
        return f"{value['head']}\n[… {left} characters in all …]\n{value['tail']}"
    return plain_words(value)


def _figure(entry: Mapping[str, Json], key: str) -> str:
    reply = _mapping(entry.get("reply"))
    value = _mapping(reply.get("usage")).get(key, reply.get(key))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DASH
    return f"{value:,}" if isinstance(value, int) else number(value, 2)


def _tokens(reply: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return _mappings(reply.get("logprobs"))


def _margin(token: Mapping[str, Json], other: Json) -> float | None:
    """Between what was chosen and the other token, in one answer."""
    pairs = {p[0]: p[1] for p in _items(token.get("top")) if len(_items(p)) == 2}
    own, value = token.get("logprob"), pairs.get(other)
    if not isinstance(own, int | float) or not isinstance(value, int | float):
        return None
    return abs(own - value)


def _is_table(value: Json) -> bool:
    found = _items(value)
    return bool(found) and len(_mappings(value)) == len(found)


def _table(name: str, value: Json) -> Table:
    lines = _mappings(value)
    heads = tuple(dict.fromkeys(k for line in lines for k in line))
    rows = tuple(tuple(plain_words(line.get(k)) for k in heads) for line in lines)
    return Table(title=name, head=heads, rows=rows)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [v for v in _items(value) if isinstance(v, Mapping)]


def _items(value: Json) -> list[Any]:
    """Of a list its members; nothing of anything else."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
