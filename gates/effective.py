"""Does the server that runs match the one that is declared?

What was read back stands in the claims, setting by setting, already compared. What a server echoes is no proof that it
does it, so two things are also looked at while one text is copied: the drafts of speculative decoding are counted, and
the prefix cache is asked at all (`prefix_cache` proves that it hits).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import number, whole
from orchestrator.gating.prompts import Nonce, fresh_nonce
from orchestrator.gating.sizing import user
from orchestrator.gating.verdicts import not_answered, skip
from orchestrator.values import Json, in_words
from orchestrator.wire.chat import Claims, Target

Row = Mapping[str, Json]

BEHAVIOUR = "behaviour."
"""How the paths of what was looked at begin; the others are places in a profile."""
FAILING = ("ignored", "contradicted")
WORDS = {
    "same": "same",
    "changed": "changed by the engine",
    "unconfirmed": "not confirmable",
    "ignored": "ignored",
    "contradicted": "contradicted",
}
DRAFTING = ("spec_drafts", "spec_draft_tok", "spec_accepted_tok", "spec_acceptance_length")
LATE_COUNTERS = ("sglang",)
"""Engines whose counters move at intervals, and not at all while they are idle."""
IGNORES_END = ("vllm", "sglang", "llamacpp")
"""Engines that take `ignore_eos`."""
NAMED_ROWS = 2
"""Failing settings that the summary names; the rest is counted."""
SHOWN_CHARS = 60
LINES = (
    "The lamp in the north room of the station is green, and the door behind it is closed.",
    "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, and again:",
)
"""What is repeated: longer than the longest piece that a look-up in the text wants to find again (12 tokens)."""
COPIED_LINES = 12
SILENT_TOK = 16
"""Answer where only the cache is looked at."""
LISTED = "`gate0 show RUN --effective` lists every setting"
HINT = f"{LISTED}; correct what is declared, or find out why the engine does not take it"
PLAIN = re.compile(r"[\w.-]{1,40}")
"""A value that can be written into a profile as it is shown."""
CORRECTABLE = ("serve.", "flags.", "args[", "env.", "slots")
"""How places begin whose value is the engine's own: it can be written there as it runs."""
SPECULATIVE = ("serve.speculative", "speculative-config", "speculative-algorithm", "spec-type", "spec-method")
"""How places end at which speculation is declared."""


def judge(rows: Sequence[Row]) -> Verdict:
    """The verdict on all rows; the evidence is left to the caller."""
    counts = {name: sum(r.get("agreement") == name for r in rows) for name in WORDS}
    measured: dict[str, Json] = dict(counts)
    failing = [r for r in rows if is_failing(r)]
    counted = ", ".join(f"{counts[name]} {words}" for name, words in WORDS.items() if counts[name])
    if failing:
        named = "; ".join(_mismatch(r) for r in failing[:NAMED_ROWS])
        more = f"; and {len(failing) - NAMED_ROWS} more" if len(failing) > NAMED_ROWS else ""
        summary = f"{named}{more} ({counted})"
        return Verdict(status=Status.FAIL, summary=summary, measured=measured, hint=_hint(failing, rows))
    if not rows:
        return skip("nothing is declared")
    if not counts["same"] and not counts["changed"]:
        return Verdict(
            status=Status.SKIP, summary=f"this server tells nothing of what is declared ({counted})", measured=measured
        )
    changed = "; ".join(f"{r.get('path')} {_value(r, 'declared')} -> {_value(r, 'running')}" for r in _changed(rows))
    return Verdict(
        status=Status.PASS, summary=": ".join(words for words in (counted, changed) if words), measured=measured
    )


def _hint(failing: Sequence[Row], rows: Sequence[Row]) -> str:
    """What to declare instead, of the settings that the summary names; else where to look."""
    fixes = dict.fromkeys(fix for row in failing[:NAMED_ROWS] if (fix := _fix(row, rows)) is not None)
    return "; ".join((*fixes, LISTED)) if fixes else HINT


def _fix(row: Row, rows: Sequence[Row]) -> str | None:
    path, running = str(row.get("path")), row.get("running")
    if path == f"{BEHAVIOUR}speculation":
        declared = (str(r.get("path")) for r in rows)
        return f"leave out {next((p for p in declared if p.endswith(SPECULATIVE)), SPECULATIVE[0])}"
    if not path.startswith(CORRECTABLE):
        return None
    is_own = not path.startswith(("serve.", "slots"))
    if running is None or path == SPECULATIVE[0] or (is_own and row.get("agreement") == "ignored"):
        return f"leave out {path}"
    is_plain = isinstance(running, bool | int | float | str) and PLAIN.fullmatch(in_words(running))
    return f"`{path}: {in_words(running)}` is what it runs" if is_plain else None


def is_failing(row: Row) -> bool:
    """What runs is not what is declared: ignored, contradicted, or changed by the engine for the worse."""
    return row.get("agreement") in FAILING or (row.get("agreement") == "changed" and row.get("is_weaker") is True)


def _changed(rows: Sequence[Row]) -> list[Row]:
    return [r for r in rows if r.get("agreement") == "changed"]


def _mismatch(row: Row) -> str:
    """`serve.max_num_seqs: declared 32, runs 8 (/props total_slots)`, with the log line where there is one."""
    if str(row.get("path")).startswith(BEHAVIOUR):
        return f"{row.get('path')}: {row.get('why')}"
    said = row.get("quote") or row.get("why") or row.get("source")
    runs = "not there" if row.get("running") is None else f"runs {_value(row, 'running')}"
    return f"{row.get('path')}: declared {_value(row, 'declared')}, {runs}" + (
        f" ({_short(str(said), 160)})" if said else ""
    )


def _value(row: Row, name: str) -> str:
    return _short(in_words(row.get(name)), SHOWN_CHARS)


def _short(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How far the server's own counters moved while texts were copied, by our names. None: it has no such counter.

    Attributes:
        is_telling: It serves metrics of its engine at all.
        acceptance_length: Tokens a step as the engine averages it itself, the accepted drafts and one more.
    """

    drafts: int | None = None
    draft_tok: int | None = None
    accepted_tok: int | None = None
    queries_tok: int | None = None
    acceptance_length: float | None = None
    is_telling: bool = False


def speculation(seen: Counted, *, engine: str) -> Row:
    """Whether drafts are made and accepted."""
    running: dict[str, Json] = {
        "drafts": seen.drafts,
        "draft_tok": seen.draft_tok,
        "accepted_tok": seen.accepted_tok,
    }
    if seen.acceptance_length is not None:
        running["acceptance_length"] = round(seen.acceptance_length, 3)
    told = {k: v for k, v in running.items() if v is not None}
    agreement, why = _drafting(seen, engine=engine)
    return _row(
        f"{BEHAVIOUR}speculation", "drafts are accepted", agreement, ", ".join(f"{k} {v}" for k, v in told.items()), why
    )


def _drafting(seen: Counted, *, engine: str) -> tuple[str, str | None]:
    has_lag = engine in LATE_COUNTERS
    if seen.accepted_tok:
        return "same", None
    if seen.acceptance_length is not None and seen.acceptance_length > 1:
        return "same", None
    if seen.drafts is None and seen.accepted_tok is None:
        if seen.is_telling and not has_lag and seen.acceptance_length is None:
            return "contradicted", "speculation is declared, and the server's metrics count no drafts at all"
        return "unconfirmed", "the server counts no drafts"
    if has_lag:
        return "unconfirmed", "the server's counters had not moved yet"
    if not seen.drafts:
        return "contradicted", "speculation is declared, and no draft was made while a text was copied"
    if seen.accepted_tok is None:
        return "unconfirmed", "the server does not count what is accepted"
    return "contradicted", f"{seen.drafts} drafts were made while a text was copied, none was accepted"


def caching(seen: Counted, *, engine: str) -> Row | None:
    """Whether the prefix cache is asked; None where the server does not count that, or not in time."""
    if seen.queries_tok is None or (not seen.queries_tok and engine in LATE_COUNTERS):
        return None
    if seen.queries_tok:
        return _row(
            f"{BEHAVIOUR}prefix_caching", "the cache is asked", "same", f"{seen.queries_tok} tokens looked up", None
        )
    why = "prefix caching is promised, and the server's counter of look-ups does not move"
    return _row(f"{BEHAVIOUR}prefix_caching", "the cache is asked", "contradicted", "0 tokens looked up", why)


def _row(path: str, declared: str, agreement: str, running: str, why: str | None) -> Row:
    return {
        "path": path,
        "declared": declared,
        "agreement": agreement,
        "running": running or None,
        "source": "metrics, before and after",
        "quote": None,
        "why": why,
        "is_weaker": False,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The gate. `nonce` gives a fresh first word for every prompt."""

    nonce: Nonce = fresh_nonce
    name: str = "effective"
    title: str = "what is declared is what runs"
    defaults: Mapping[str, Json] = field(default_factory=lambda: {"output_tokens": 200, "timeout_s": 600.0})

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Look at what two features do, and judge it beside what was read back."""
        claims = target.claims
        rows = list(claims.compared or ())
        shown: list[Mapping[str, Json]] = []
        if claims.task == "generate" and (claims.speculative or _counts_queries(target)):
            before = _read(target)
            is_known = any(is_failing(r) and r.get("path") == "serve.speculative" for r in rows)
            for index in range(1 if is_known else 2):
                tokens = (index * 2 + 1) * whole(params, "output_tokens") if claims.speculative else SILENT_TOK
                body = _copy_body(claims, self.nonce(), tokens, seed=index)
                reply = target.chat(body, timeout_s=number(params, "timeout_s"))
                shown.append(exchange(f"copy {index + 1}", body, reply))
                if not reply.is_ok:
                    return not_answered("a text to copy", reply, evidence=(*map(dict, rows), *shown))
                seen = _moved(before, _read(target), claims)
                found = _behaviours(seen, claims)
                if not any(is_failing(r) for r in found):
                    break
            rows += found
        if claims.compared is None and not rows:
            return skip("nothing was read back from this server")
        verdict = judge(rows)
        return replace(verdict, evidence=(*sorted(map(dict, rows), key=_order), *shown))


def _order(row: Row) -> tuple[bool, int]:
    """Failing first, then what the engine changed, what nothing confirms, what is the same."""
    order = ("contradicted", "ignored", "changed", "unconfirmed", "same")
    found = str(row.get("agreement"))
    return not is_failing(row), order.index(found) if found in order else len(order)


def _behaviours(seen: Counted, claims: Claims) -> list[Row]:
    found = [speculation(seen, engine=claims.engine)] if claims.speculative else []
    asked = caching(seen, engine=claims.engine) if claims.prefix_caching else None
    return [*found, asked] if asked is not None else found


def _counts_queries(target: Target) -> bool:
    theirs = target.claims.metrics.get("cache_queries_tok")
    return bool(target.claims.prefix_caching) and theirs is not None and theirs in (target.metrics() or {})


def _copy_body(claims: Claims, nonce: str, tokens: int, *, seed: int) -> dict[str, Json]:
    """A text that goes on as it began, in what a short context has room for: even a tiny model repeats it."""
    lines = COPIED_LINES
    if claims.max_model_len is not None:
        tokens = max(SILENT_TOK, min(tokens, claims.max_model_len // 3))
        lines = max(3, min(lines, claims.max_model_len // 60))
    line = LINES[seed % len(LINES)]
    text = "\n".join([line] * lines)
    body: dict[str, Json] = {"max_tokens": tokens}
    if claims.engine in IGNORES_END:
        body["ignore_eos"] = True  # an answer that is over after a line drafts nothing
    ask = f"{nonce}\nWrite this line again and again, exactly as it stands, and nothing else:\n\n{text}"
    return {"messages": user(ask), **body}


def _read(target: Target) -> Mapping[str, float]:
    """The counters by our names, as far as the server serves them."""
    exposed = target.metrics() or {}
    return {ours: exposed[theirs] for ours, theirs in target.claims.metrics.items() if theirs in exposed}


def _moved(before: Mapping[str, float], after: Mapping[str, float], claims: Claims) -> Counted:
    def by(name: str) -> int | None:
        return round(after[name] - before.get(name, 0.0)) if name in after else None

    return Counted(
        drafts=by("spec_drafts"),
        draft_tok=by("spec_draft_tok"),
        accepted_tok=by("spec_accepted_tok"),
        queries_tok=by("cache_queries_tok"),
        acceptance_length=after.get("spec_acceptance_length"),
        is_telling=any(name not in DRAFTING for name in after),
    )


GATE = Effective()
