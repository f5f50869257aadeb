"""Is the longest request that the profile promises really answered?

A server that starts can still refuse what it was sold for: a KV cache smaller than max_model_len turns every long
call into a 400, and some servers cut a long prompt silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import number, whole
from orchestrator.gating.prompts import Nonce, fact_of, fresh_nonce
from orchestrator.gating.sizing import Ruler, measure, served_max_len, text_of, user
from orchestrator.gating.verdicts import not_answered, skip, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

UNKNOWN_OVERHEAD_TOK = 64
ESTIMATE_SHARE = 0.97
"""Without a tokenizer the text is estimated: stay this far below the limit, so that a 400 is the server's fault."""
CUT_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What is promised, in tokens. `served_len`: what the server itself lists."""

    max_model_len: int
    output_tok: int
    served_len: int | None = None
    cap_tok: int = 0

    @property
    def prompt_tok(self) -> int:
        """The longest prompt that leaves room for the answer."""
        return self.max_model_len - self.output_tok

    @property
    def asked_tok(self) -> int:
        """What is tested: the promise, or the cap that the suite's parameters set."""
        return min(self.prompt_tok, self.cap_tok) if self.cap_tok else self.prompt_tok


def judge(promise: Promise, reply: Reply, *, sent_tok: int) -> Verdict:
    """Judge the answer to the longest request.

    Args:
        sent_tok: The prompt's length as counted or estimated before sending.
    """
    counted = reply.usage.prompt_tok
    measured: dict[str, Json] = {
        "max_model_len": promise.max_model_len,
        "output_tok": promise.output_tok,
        "served_len": promise.served_len,
        "sent_tok": sent_tok,
        "prompt_tok": counted,
        "http_status": reply.http_status,
    }
    promised = f"{promise.max_model_len:,} - {promise.output_tok:,} for the answer"
    served = f"; the server lists {promise.served_len:,}" if promise.served_len else ""
    if reply.http_status == 0:
        return Verdict(status=Status.ERROR, summary=f"could not tell: no answer: {reply.error}", measured=measured)
    if not reply.is_ok:
        return Verdict(
            status=Status.FAIL,
            summary=f"a prompt of {sent_tok:,} tokens ({promised}) is refused with HTTP {reply.http_status}: "
            f"{reply.error}{served}",
            measured=measured,
            hint="lower max_model_len to what the server really takes, or give it more memory for the KV cache",
        )
    if counted is not None and counted < CUT_SHARE * sent_tok:
        return Verdict(
            status=Status.FAIL,
            summary=f"a prompt of {sent_tok:,} tokens was cut to {counted:,} without a word",
            measured=measured,
            hint="the server drops what does not fit; set its context length to the promise",
        )
    if not (reply.text or reply.reasoning or reply.tool_calls or reply.usage.output_tok):
        return Verdict(status=Status.FAIL, summary=f"no token for a prompt of {sent_tok:,} tokens", measured=measured)
    capped = f", capped from {promise.prompt_tok:,}" if promise.asked_tok < promise.prompt_tok else ""
    return Verdict(
        status=Status.PASS,
        summary=f"a prompt of {counted or sent_tok:,} tokens is answered ({promised}{capped})",
        measured=measured,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The gate.

    Parameters: `output_tokens` is reserved where the profile names no max_output; `max_prompt_tokens` caps the test
    (0: no cap) for machines too slow for the whole promise.
    """

    nonce: Nonce = fresh_nonce
    name: str = "context"
    title: str = "the longest promised request is answered"
    defaults: Mapping[str, Json] = field(
        default_factory=lambda: {"output_tokens": 256, "max_prompt_tokens": 0, "timeout_s": 1800.0}
    )

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Build the longest prompt, send it, judge."""
        claims = target.claims
        if (skipped := skip_unless_generating(claims)) is not None:
            return skipped
        served = served_max_len(target)
        longest = claims.max_model_len or served
        if longest is None:
            return skip("nobody says how long a request may be: no max_model_len declared, none listed")
        promise = Promise(
            max_model_len=longest,
            output_tok=min(claims.max_output or whole(params, "output_tokens"), longest // 2),
            served_len=served,
            cap_tok=whole(params, "max_prompt_tokens"),
        )
        timeout_s = number(params, "timeout_s")
        ruler = measure(target, nonce=self.nonce(), timeout_s=timeout_s)
        content, sent_tok = self._prompt(target, ruler, promise)
        body: Mapping[str, Json] = {"messages": user(content), "max_tokens": min(16, promise.output_tok)}
        reply = target.chat(body, stream=True, timeout_s=timeout_s)
        evidence = (exchange("longest", body, reply, sent_tok=sent_tok),)
        if reply.http_status == 0:
            return not_answered(f"a prompt of {sent_tok:,} tokens", reply, evidence=evidence)
        verdict = judge(promise, reply, sent_tok=sent_tok)
        is_found = fact_of(3).answer in reply.text + reply.reasoning
        return replace(verdict, measured={**verdict.measured, "first_fact_found": is_found}, evidence=evidence)

    def _prompt(self, target: Target, ruler: Ruler, promise: Promise) -> tuple[str, int]:
        """The longest prompt's text and its length in tokens with the template."""
        question = f"\n\n{fact_of(3).question}"
        overhead = UNKNOWN_OVERHEAD_TOK if ruler.overhead_tok is None else ruler.overhead_tok
        asked = target.count_tokens(question) if ruler.can_count else None
        beside = overhead + (asked if asked is not None else 24) + 2
        room = promise.asked_tok - beside
        if not ruler.can_count:
            room = int(room * ESTIMATE_SHARE)
        sized = text_of(target, ruler, room, nonce=self.nonce(), seed=3, fact=fact_of(3))
        return sized.text + question, (sized.tok if sized.tok is not None else room) + beside


GATE = Context()
