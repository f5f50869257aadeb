"""Recorded conversations and traces, read into `Conversation`s.

ShareGPT's JSON is a list of `{"conversations": [{"from": …, "value": …}, …]}` (or one such object a line). Real files
are untidy: answers before any question, two questions in a row, empty turns, a last question that nobody answered.
What is read is what a client can replay: questions and answers by turns, the first one a question, each with its
answer; neighbours of one role are joined, and a turn by anybody else (a tool) ends the conversation before it.

A trace is CSV or JSON lines with a time and two lengths a row:

    Mooncake   timestamp (ms), input_length, output_length, hash_ids: names of the prompt's blocks of 512 tokens
    BurstGPT   Timestamp (s), Request tokens, Response tokens; a row with 0 of either was a failure and is left out
    any        timestamp_s, input_length, output_length
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import orjson

from orchestrator.sweep.rows import Row, csv_rows, json_rows, wrong
from orchestrator.sweep.workload import Conversation
from orchestrator.values import digest

AUTO, SHAREGPT, TRACE = "auto", "sharegpt", "trace"
USER, ASSISTANT, SYSTEM = "user", "assistant", "system"
ROLES = {
    "human": USER,
    "user": USER,
    "gpt": ASSISTANT,
    "chatgpt": ASSISTANT,
    "assistant": ASSISTANT,
    "bing": ASSISTANT,
    "bard": ASSISTANT,
    "system": SYSTEM,
}
TOK_PER_WORD = 1.3
"""Before a server has counted."""

TIMES: Mapping[str, float] = {"timestamp_s": 1.0, "timestamp": 1e-3, "Timestamp": 1.0}
"""Names of a trace's time, with the seconds of its unit."""
INPUTS = ("input_length", "Request tokens")
OUTPUTS = ("output_length", "Response tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a file held, as far as it is used.

    Attributes:
        form: `sharegpt` or `trace`.
        digest: Of the conversations as they are here: equal recordings, taken alike, have the same one.
        left_out: Conversations or rows that could not be used or asked for more than `most_prompt`. What `limit` did
            not take is not counted.
        cut: Conversations that end early: by `most_turns`, by `most_prompt`, or before a turn of an unknown role.
    """

    form: str
    conversations: tuple[Conversation, ...]
    left_out: int
    cut: int

    @property
    def digest(self) -> str:
        return digest(
            [[c.at_s, c.system, list(c.prompts), list(c.answers), list(c.blocks)] for c in self.conversations]
        )

    @property
    def is_timed(self) -> bool:
        return self.form == TRACE and all(c.at_s is not None for c in self.conversations)

    def without_times(self) -> Recording:
        """To be replayed at a rate, in the same order."""
        return replace(self, conversations=tuple(replace(c, at_s=None) for c in self.conversations))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    conversation: Conversation
    is_cut: bool = False


def read_recording(
    text: str,
    file: str,
    *,
    form: str = AUTO,
    limit: int | None = None,
    pick: str = "first",
    seed: int = 1,
    most_turns: int | None = None,
    most_prompt: int | None = None,
) -> Recording:
    """Read it and take what the workload asks for.

    Args:
        file: For messages.
        pick: `first` or `random`: which ones `limit` takes, of those that can be used.

    Raises:
        InvalidFile: It is neither, with line and key; or nothing in it can be used.
    """
    form = form_of(text, file) if form == AUTO else form
    found = list(_trace(text, file) if form == TRACE else _sharegpt(text, file))
    shortened = [None if read is None else _shortened(read, most_turns, most_prompt) for read in found]
    usable = [read for read in shortened if read is not None]
    if not usable:
        raise wrong(file, None, "", f"nothing in it can be replayed ({len(found)} entries read as {form})")
    taken = _taken(usable, limit, pick, seed)
    conversations = tuple(read.conversation for read in taken)
    return Recording(
        form=form,
        conversations=_from_zero(conversations) if form == TRACE else conversations,
        left_out=len(found) - len(usable),
        cut=sum(read.is_cut for read in taken),
    )


def form_of(text: str, file: str) -> str:
    """`sharegpt` or `trace`, by the first characters.

    Raises:
        InvalidFile: Neither.
    """
    head = text.lstrip()
    if head.startswith("["):
        return SHAREGPT
    if not head:
        raise wrong(file, None, "", "the file is empty")
    if not head.startswith("{"):
        return TRACE
    first = next(json_rows(head.split("\n", 1)[0], file))
    return SHAREGPT if "conversations" in first.cells else TRACE


def _taken(usable: Sequence[_Read], limit: int | None, pick: str, seed: int) -> Sequence[_Read]:
    if limit is None or limit >= len(usable):
        return usable
    if pick == "first":
        return usable[:limit]
    chosen = sorted(Random(f"{seed}/pick").sample(range(len(usable)), limit))
    return [usable[i] for i in chosen]


def _from_zero(conversations: tuple[Conversation, ...]) -> tuple[Conversation, ...]:
    """In the order of their times, the first at 0."""
    ordered = sorted(conversations, key=lambda c: c.at_s or 0.0)
    start = ordered[0].at_s or 0.0
    return tuple(replace(c, at_s=round((c.at_s or 0.0) - start, 6)) for c in ordered)


def _shortened(read: _Read, most_turns: int | None, most_prompt: int | None) -> _Read | None:
    """The conversation within the limits, None when not even its first turn is."""
    c = read.conversation
    turns = len(c.prompts) if most_turns is None else min(most_turns, len(c.prompts))
    if most_prompt is not None:
        context = _tok(c.system or "")
        for turn in range(turns):
            context += _tok(c.prompts[turn])
            if context > most_prompt:
                turns = turn
                break
            context += _tok(c.answers[turn])
    if turns == 0:
        return None
    if turns == len(c.prompts):
        return read
    return _Read(conversation=replace(c, prompts=c.prompts[:turns], answers=c.answers[:turns]), is_cut=True)


def _tok(part: str | int) -> float:
    return part if isinstance(part, int) else TOK_PER_WORD * len(part.split())


def _trace(text: str, file: str) -> Iterator[_Read | None]:
    rows = json_rows(text, file) if text.lstrip().startswith("{") else csv_rows(text, file)
    for row in rows:
        time, prompt, answer = (_key(row, names) for names in (tuple(TIMES), INPUTS, OUTPUTS))
        prompt_tok, output_tok = row.whole(prompt), row.whole(answer)
        conversation = Conversation(
            prompts=(prompt_tok,), answers=(output_tok,), at_s=row.number(time) * TIMES[time], blocks=_blocks(row)
        )
        yield _Read(conversation=conversation) if prompt_tok and output_tok else None


def _key(row: Row, names: Sequence[str]) -> str:
    found = next((name for name in names if name in row.cells), None)
    if found is None:
        known = ", ".join(row.cells)
        raise wrong(row.file, row.line, names[0], f"missing: a trace has one of {', '.join(names)}; here: {known}")
    return found


def _blocks(row: Row) -> tuple[int, ...]:
    value = row.cells.get("hash_ids", [])
    if not isinstance(value, list) or not all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        raise wrong(row.file, row.line, "hash_ids", "expected a list of whole numbers")
    return tuple(value)


def _sharegpt(text: str, file: str) -> Iterator[_Read | None]:
    if text.lstrip().startswith("{"):
        for row in json_rows(text, file):
            yield _conversation(_Entry(file=file, line=row.line, path="", value=dict(row.cells)))
        return
    try:
        entries = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise wrong(file, exc.lineno, "", f"not JSON: {exc.msg} at column {exc.colno}") from exc
    if not isinstance(entries, list):
        raise wrong(file, 1, "", "expected a list of conversations, as ShareGPT's JSON has it")
    for index, value in enumerate(entries):
        yield _conversation(_Entry(file=file, line=None, path=f"[{index}]", value=value, text=text, index=index))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One conversation as it was written. `line` None: it is looked up in `text` when a message needs it."""

    file: str
    line: int | None
    path: str
    value: Any
    text: str = ""
    index: int = 0

    def wrong(self, key: str, message: str) -> Exception:
        line = self.line or _line_of(self.text, self.index)
        return wrong(self.file, line, f"{self.path}.{key}".strip("."), message)


def _conversation(entry: _Entry) -> _Read | None:
    turns = entry.value.get("conversations") if isinstance(entry.value, dict) else None
    if not isinstance(turns, list):
        raise entry.wrong("conversations", "expected a list of turns with `from` and `value`")
    said: list[tuple[str, str]] = []
    is_cut = False
    for i, turn in enumerate(turns):
        who, words = _turn(entry, i, turn)
        if who not in ROLES:
            is_cut = True
            break
        if words.strip():
            said.append((ROLES[who], words))
    system, pairs = _paired(said)
    if not pairs:
        return None
    prompts, answers = zip(*pairs, strict=True)
    return _Read(conversation=Conversation(prompts=prompts, answers=answers, system=system), is_cut=is_cut)


def _turn(entry: _Entry, index: int, turn: Any) -> tuple[str, str]:
    path = f"conversations[{index}]"
    if not isinstance(turn, dict):
        raise entry.wrong(path, "expected a turn with `from` and `value`")
    for key in ("from", "value"):
        if not isinstance(turn.get(key), str):
            raise entry.wrong(f"{path}.{key}", "expected text")
    return turn["from"].lower(), turn["value"]


def _paired(said: Sequence[tuple[str, str]]) -> tuple[str | None, list[tuple[str, str]]]:
    """System words, and questions with their answers."""
    system = "\n\n".join(words for role, words in said if role == SYSTEM) or None
    joined: list[list[str]] = []
    for role, words in said:
        if role == SYSTEM or (not joined and role == ASSISTANT):
            continue
        if joined and joined[-1][0] == role:
            joined[-1][1] += f"\n\n{words}"
        else:
            joined.append([role, words])
    words_of = [words for _, words in joined]
    return system, list(zip(words_of[::2], words_of[1::2], strict=False))


def _line_of(text: str, index: int) -> int:
    """The line on which the index-th entry of a JSON list begins. Slow: for a message only."""
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    for _ in range(index):
        _, at = decoder.raw_decode(text, _next(text, at))
        at = text.index(",", at) + 1
    return text.count("\n", 0, _next(text, at)) + 1


def _next(text: str, at: int) -> int:
    while text[at].isspace():
        at += 1
    return at
