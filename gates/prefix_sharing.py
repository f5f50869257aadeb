"""Is one primed prefix shared by requests that arrive at the same time? It decides what a swarm costs.

A cache kept per slot (llama-server) hits when one user goes on, and makes every other lane read the prefix again.
That is how such a server works, so it is named and, unless `require` says that sharing is promised, not a failure:
UNSTABLE shows it on every row and is never a tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.gating.counters import Seen, ask_counted, cached_source, cached_tok, flag_hint, metric
from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import is_set, number, whole
from orchestrator.gating.prompts import Nonce, fresh_nonce
from orchestrator.gating.sizing import Sized, longest_prompt, measure, text_of, user
from orchestrator.gating.verdicts import not_answered, skip, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

OUTPUT_TOK = 8
RESERVE_TOK = 160
LEAST_SHARE = 0.5
"""A lane shares the prefix when at least this part of its prompt came from the cache: blocks round a hit down."""


def judge(prompt_tok: Sequence[int], cached: Sequence[int], *, is_required: bool = False) -> Verdict:
    """Judge the lanes' cached tokens, in the order of the requests."""
    lanes = len(cached)
    shared = sum(c >= LEAST_SHARE * n for c, n in zip(cached, prompt_tok, strict=True))
    read_again = sum(n - c for c, n in zip(cached, prompt_tok, strict=True))
    measured: dict[str, Json] = {
        "lanes": lanes,
        "lanes_sharing": shared,
        "prompt_tok": list(prompt_tok),
        "cached_tok": list(cached),
        "read_again_tok": read_again,
    }
    if shared == lanes:
        return Verdict(
            status=Status.PASS,
            summary=f"shared: {lanes} of {lanes} requests at once read the primed prefix ({min(cached):,} tokens each)",
            measured=measured,
        )
    return Verdict(
        status=Status.FAIL if is_required else Status.UNSTABLE,
        summary=f"not shared across lanes: {shared} of {lanes} requests at once hit the primed prefix, "
        f"{read_again:,} tokens were read again",
        measured=measured,
        hint="a swarm pays the prefix once per lane here; engines with one cache for all lanes do not",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSharing:
    """The gate. `require`: sharing is promised, so its absence is FAIL."""

    nonce: Nonce = fresh_nonce
    name: str = "prefix_sharing"
    title: str = "one prefix is shared by requests at the same time"
    defaults: Mapping[str, Json] = field(
        default_factory=lambda: {
            "prompt_tokens": 8000,
            "requests": 4,
            "primes": 3,
            "require": False,
            "timeout_s": 600.0,
        }
    )

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Prime the prefix, send the tails at the same time, judge their counters."""
        claims = target.claims
        if (skipped := skip_unless_generating(claims)) is not None:
            return skipped
        if claims.prefix_caching is False:
            return skip("prefix caching is declared off")
        timeout_s = number(params, "timeout_s")
        sized = self._prefix(target, whole(params, "prompt_tokens"), timeout_s)
        evidence: list[Mapping[str, Json]] = []
        primes: list[Seen] = []
        for i in range(whole(params, "primes")):
            # With a tail of its own each, so that what is primed is the prefix: some hybrids keep a state only where
            # two prompts were seen to part.
            primes.append(ask_counted(target, _body(sized.text, 100 + i), label=f"prime {i + 1}", timeout_s=timeout_s))
            evidence.append(exchange(primes[-1].label, primes[-1].body, primes[-1].reply))
            if not primes[-1].reply.is_ok:
                return not_answered(primes[-1].label, primes[-1].reply, evidence=tuple(evidence))
        bodies = [_body(sized.text, i) for i in range(whole(params, "requests"))]
        before = metric(target, "cache_hits_tok")
        replies = target.chat_many(bodies, timeout_s=timeout_s)
        after = metric(target, "cache_hits_tok")
        evidence += [exchange(f"lane {i + 1}", b, r) for i, (b, r) in enumerate(zip(bodies, replies, strict=True))]
        for i, reply in enumerate(replies):
            if not reply.is_ok:
                return not_answered(f"lane {i + 1}", reply, evidence=tuple(evidence))
        moved = None if before is None or after is None else round(after - before)
        verdict = _verdict(target, primes, replies, moved=moved, is_required=is_set(params, "require"))
        return replace(verdict, evidence=tuple(evidence))

    def _prefix(self, target: Target, tokens: int, timeout_s: float) -> Sized:
        ruler = measure(target, nonce=self.nonce(), timeout_s=timeout_s)
        room = longest_prompt(target, output_tok=OUTPUT_TOK, reserve_tok=RESERVE_TOK)
        return text_of(
            target, ruler, tokens if room is None else max(64, min(tokens, room)), nonce=self.nonce(), seed=7
        )


def _verdict(
    target: Target, primes: Sequence[Seen], replies: Sequence[Reply], *, moved: int | None, is_required: bool
) -> Verdict:
    prompt_tok = [r.usage.prompt_tok or 0 for r in replies]
    lanes = [
        Seen(label="", body={}, reply=r, usage_tok=r.usage.cached_tok, metric_tok=None if moved is None else 0)
        for r in replies
    ]
    source = cached_source([*primes, *lanes])
    if source is None or not all(prompt_tok):
        return Verdict(
            status=Status.ERROR,
            summary="could not tell: the server reports no cached tokens",
            hint=flag_hint(target.claims.engine),
        )
    if source == "usage":
        return judge(prompt_tok, [cached_tok(s, source) for s in lanes], is_required=is_required)
    # The engine's counter knows the lanes together only: spread evenly, it still tells all from none.
    share = (moved or 0) // len(lanes)
    return judge(prompt_tok, [min(share, n) for n in prompt_tok], is_required=is_required)


def _body(text: str, number: int) -> Mapping[str, Json]:
    content = f"{text}\n\nQuestion {number}: which room is named in line {number + 2}? Answer in one word."
    return {"messages": user(content), "max_tokens": OUTPUT_TOK}


GATE = PrefixSharing()
