"""Is the cached answer the same as the fresh one? Cold against warm at temperature 0, with the lane's own controls.

Each prompt is answered twice cold, by the engine's own cold path (a cache salt, a flush, `cache_prompt: false`), and
twice warm. Cold against cold is the noise; cold against warm must stay within it (see `orchestrator.gating.likeness`).
A planted fact must be found on both paths. One prompt has a length of 1 modulo 64: a hit that leaves one token to
compute is where some engines answer wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from orchestrator.gating.cold import cold_body, has_cold_path
from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.likeness import Answer, Finding, Kind, Limits, Runs, find
from orchestrator.gating.params import items, number, whole
from orchestrator.gating.prompts import Fact, Nonce, fact_of, fresh_nonce
from orchestrator.gating.sizing import Ruler, longest_prompt, measure, text_of, user
from orchestrator.gating.verdicts import not_answered, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

RESERVE_TOK = 160
HEAD_TOK = 128
WARM_RUNS = 2
WARM_TRIES = 4
PAD_TRIES = 4
UNIT = 64
_FAILING = (Kind.FACT_LOST, Kind.BEYOND)
_UNSTABLE = (Kind.VARIES, Kind.NEAR_TIE, Kind.TEXT_DIFFERS, Kind.SHIFTED)


class NotAnswered(Exception):
    """A run got no answer; carries it out of the loop over the runs."""

    def __init__(self, label: str, reply: Reply) -> None:
        super().__init__(label)
        self.label = label
        self.reply = reply


def judge(
    findings: Sequence[Finding],
    runs: Sequence[Runs],
    *,
    has_controls: bool = True,
    is_caching: bool | None = True,
) -> Verdict:
    """Judge all prompts together.

    Args:
        has_controls: Two cold runs were possible.
        is_caching: The profile's word on prefix caching. Unless it is off, some warm run must really have hit.
    """
    shifts = [f.shift for f in findings if f.shift is not None]
    hits = [_has_hit(r) for r in runs]
    measured: dict[str, Json] = {
        "prompts": [{**asdict(f), "kind": f.kind.value} for f in findings],
        "warm_cached_tok": [[a.cached_tok for a in r.warm] for r in runs],
        "largest_shift_nats": max(shifts, default=None),
        "fact_found_cold": sum(all(a.has_fact for a in r.cold) for r in runs),
        "fact_found_warm": sum(all(a.has_fact for a in r.warm) for r in runs),
    }
    notes = _notes(runs, has_logprobs=bool(shifts), has_controls=has_controls, hits=hits)
    status, summary, hint = _decide(findings)
    if status is Status.PASS and is_caching is not False and hits and not any(h is not False for h in hits):
        return Verdict(
            status=Status.ERROR,
            summary="could not tell: no warm run hit the cache, so nothing cached was compared",
            measured=measured,
            hint="see the prefix_cache gate; longer prompts may be needed (`prompt_tokens`)",
        )
    return Verdict(status=status, summary="; ".join([summary, *notes]), measured=measured, hint=hint)


def _decide(findings: Sequence[Finding]) -> tuple[Status, str, str | None]:
    count = len(findings)
    for kind in _FAILING:
        if bad := [f for f in findings if f.kind is kind]:
            return (
                Status.FAIL,
                f"{len(bad)} of {count} prompts: {bad[0].words} (noise {_nats(bad[0].noise)})",
                "what the cache gives back is not what was computed: try the engine's next version, or caching off",
            )
    text_only = [f for f in findings if f.kind is Kind.TEXT_DIFFERS]
    if len(text_only) == count >= 3:
        return Status.FAIL, f"{count} of {count} prompts: {text_only[0].words}, and no control does", None
    for kind in _UNSTABLE:
        if bad := [f for f in findings if f.kind is kind]:
            words = f"{kind.value} on {len(bad)} of {count} prompts: {bad[0].words}"
            moved = f" ({_nats(bad[0].shift)}, noise {_nats(bad[0].noise)})" if bad[0].shift is not None else ""
            return Status.UNSTABLE, words + moved, None
    shift = max((f.shift for f in findings if f.shift is not None), default=None)
    noise = max((f.noise for f in findings if f.noise is not None), default=None)
    within = "" if shift is None else f", logprobs within {_nats(shift)} (noise {_nats(noise)})"
    return Status.PASS, f"{count} of {count} prompts answered the same cold and warm{within}", None


def _notes(runs: Sequence[Runs], *, has_logprobs: bool, has_controls: bool, hits: Sequence[bool | None]) -> list[str]:
    notes = []
    if not has_logprobs:
        notes.append("text only, no logprobs")
    if not has_controls:
        notes.append("no cold control: this engine has no way to answer cold again")
    if any(h is None for h in hits):
        notes.append("hits not proven, no counter")
    elif not all(hits):
        notes.append(f"{sum(map(bool, hits))} of {len(hits)} really hit the cache")
    missed = [r for r in runs if not any(a.has_fact for a in (*r.cold, *r.warm))]
    if missed:
        notes.append(f"planted fact not found in {len(missed)} of {len(runs)}, cold or warm: the model misses it")
    return notes


def _has_hit(runs: Runs) -> bool | None:
    """True when the warm runs came from the cache; None: no counter says."""
    known = [a.cached_tok for a in runs.warm if a.cached_tok is not None]
    if not known:
        return None
    return min(known) > min(HEAD_TOK, (runs.prompt_tok or 0) // 4)


def _nats(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinism:
    """The gate.

    Parameters: `prompt_tokens`, one prompt each, the first of a length of 1 modulo 64 where the server counts tokens;
    `tokens` compared; `noise_factor`, `floor_nats` and `fail_nats` bound the logprobs' move
    (`orchestrator.gating.likeness.Limits`).
    """

    nonce: Nonce = fresh_nonce
    name: str = "determinism"
    title: str = "the cached answer is the fresh one"
    defaults: Mapping[str, Json] = field(
        default_factory=lambda: {
            "prompt_tokens": [2000, 4000, 20000],
            "max_tokens": 48,
            "tokens": 16,
            "noise_factor": 10.0,
            "floor_nats": 0.5,
            "fail_nats": 1.0,
            "timeout_s": 600.0,
        }
    )

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Answer every prompt cold and warm, compare, judge."""
        claims = target.claims
        if (skipped := skip_unless_generating(claims)) is not None:
            return skipped
        limits = Limits(
            noise_factor=number(params, "noise_factor"),
            floor_nats=number(params, "floor_nats"),
            fail_nats=number(params, "fail_nats"),
            tokens=whole(params, "tokens"),
        )
        ruler = measure(target, nonce=self.nonce(), timeout_s=number(params, "timeout_s"))
        asker = _Asker(
            target, self.nonce, timeout_s=number(params, "timeout_s"), max_tokens=whole(params, "max_tokens")
        )
        runs: list[Runs] = []
        try:
            for index, tokens in enumerate(_lengths(target, params)):
                content = self._content(target, ruler, tokens, seed=index, is_odd=index == 0)
                runs.append(asker.runs(content, fact_of(index), label=f"prompt {index + 1}"))
        except NotAnswered as exc:
            return not_answered(exc.label, exc.reply, evidence=tuple(asker.evidence))
        findings = [find(r, limits) for r in runs]
        verdict = judge(
            findings, runs, has_controls=all(len(r.cold) > 1 for r in runs), is_caching=claims.prefix_caching
        )
        return replace(verdict, evidence=tuple(asker.evidence))

    def _content(self, target: Target, ruler: Ruler, tokens: int, *, seed: int, is_odd: bool) -> str:
        fact = fact_of(seed)
        text = text_of(target, ruler, tokens, nonce=self.nonce(), seed=seed, fact=fact).text
        content = f"{text}\n\n{fact.question}"
        if not is_odd or not ruler.can_count or ruler.overhead_tok is None:
            return content
        pad = 0
        for _ in range(PAD_TRIES):
            content = f"{text}{' yes' * pad}\n\n{fact.question}"
            missing = (1 - ruler.overhead_tok - (target.count_tokens(content) or 0)) % UNIT
            if missing == 0:
                break
            pad += missing
        return content


class _Asker:
    """Sends the runs of one gate and keeps what it was shown."""

    def __init__(self, target: Target, nonce: Nonce, *, timeout_s: float, max_tokens: int) -> None:
        self.evidence: list[Mapping[str, Json]] = []
        self._target = target
        self._nonce = nonce
        self._timeout_s = timeout_s
        self._max_tokens = max_tokens
        self._logprobs: Mapping[str, Json] = {"logprobs": True, "top_logprobs": 5}

    def runs(self, content: str, fact: Fact, *, label: str) -> Runs:
        """Two cold answers where the engine can, then warm ones until two have hit.

        Raises:
            NotAnswered: A request was refused or broke.
        """
        cold: list[Answer] = []
        if has_cold_path(self._target.claims):
            for i in range(2):
                body = cold_body(self._target, self._body(content), nonce=self._nonce())
                if body is not None:
                    cold.append(self._ask(body, fact, f"{label} cold {i + 1}")[0])
        first, prompt_tok = self._ask(self._body(content), fact, f"{label} first")
        warm: list[Answer] = []
        tried: list[Answer] = []
        while len(warm) < WARM_RUNS and len(tried) < WARM_TRIES:
            answer, _ = self._ask(self._body(content), fact, f"{label} warm {len(tried) + 1}")
            tried.append(answer)
            # A late first hit is known of hybrids: what did not hit yet is not warm.
            if answer.cached_tok is None or answer.cached_tok > min(HEAD_TOK, (prompt_tok or 0) // 4):
                warm.append(answer)
        enough = warm if len(warm) == WARM_RUNS else tried[-WARM_RUNS:]
        return Runs(prompt_tok=prompt_tok, cold=tuple(cold or [first]), warm=tuple(enough))

    def _body(self, content: str) -> Mapping[str, Json]:
        return {"messages": user(content), "max_tokens": self._max_tokens, **self._logprobs}

    def _ask(self, body: Mapping[str, Json], fact: Fact, label: str) -> tuple[Answer, int | None]:
        reply = self._target.chat(body, timeout_s=self._timeout_s)
        if not reply.is_ok and reply.http_status in range(400, 500) and "logprobs" in body and self._logprobs:
            # Some servers take no logprobs (or none beside speculation): go on with the text alone.
            self._logprobs = {}
            body = {k: v for k, v in body.items() if k not in ("logprobs", "top_logprobs")}
            reply = self._target.chat(body, timeout_s=self._timeout_s)
        self.evidence.append(exchange(label, body, reply))
        if not reply.is_ok:
            raise NotAnswered(label, reply)
        words = reply.reasoning + reply.text
        answer = Answer(
            text=words,
            tokens=reply.logprobs,
            has_fact=fact.answer in words,
            cached_tok=reply.usage.cached_tok,
        )
        return answer, reply.usage.prompt_tok


def _lengths(target: Target, params: Mapping[str, Json]) -> list[int]:
    """The wanted lengths, the longest cut to what one request may hold, the others spread below it."""
    wanted = [n for n in items(params, "prompt_tokens") if isinstance(n, int) and n > 0]
    room = longest_prompt(target, output_tok=whole(params, "max_tokens"), reserve_tok=RESERVE_TOK)
    if room is None:
        return wanted
    room = max(room, 64)
    return [n if n <= room else room - 128 * i if room > 512 else room for i, n in enumerate(wanted)]


GATE = Determinism()
