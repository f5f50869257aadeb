"""Whether speculation is there, is the declared one, and accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.engines.effective.evidence import Evidence, agree, confess, untold
from orchestrator.engines.effective.model import Agreement, Compared, NoticeKind, Reading
from orchestrator.engines.effective.sameness import method_of
from orchestrator.profile.model import Speculative
from orchestrator.values import Json

PATH = "serve.speculative"
ENOUGH_DRAFTED_TOK = 32
"""So many drafted tokens without one accepted are no accident: at a poor 20 % acceptance the odds are 1 in 1,000."""

OPTIONAL_METHODS = frozenset({"ngram", "suffix"})
"""These draft only where the text repeats itself: no drafts prove nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationVerdict:
    """What counters say of speculation. UNCONFIRMED: too little was drafted to say."""

    agreement: Agreement
    why: str


def judge_speculation(
    drafts: float | None,
    drafted: float | None,
    accepted: float | None,
    *,
    acceptance_length: float | None = None,
    always_drafts: bool = False,
) -> SpeculationVerdict:
    """Say from counters whether speculation accepts: from their totals, or their differences over some traffic.

    Args:
        drafts: Steps that verified drafts.
        drafted: Tokens drafted.
        accepted: Of these accepted.
        acceptance_length: Tokens a step where the engine tells only this mean (SGLang); 1: none was accepted.
        always_drafts: Text was generated meanwhile, and this method drafts at each step.

    Returns:
        SAME: some were accepted. CONTRADICTED: enough were drafted and none accepted. IGNORED: nothing was drafted
        though it should have been. UNCONFIRMED otherwise.
    """
    if drafted is not None and accepted is not None and drafted > 0:
        if accepted > 0:
            share = f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted ({accepted / drafted:.0%})"
            return SpeculationVerdict(agreement=Agreement.SAME, why=share)
        if drafted >= ENOUGH_DRAFTED_TOK:
            why = f"it never accepts: 0 of {drafted:.0f} drafted tokens"
            return SpeculationVerdict(agreement=Agreement.CONTRADICTED, why=why)
        why = f"only {drafted:.0f} tokens drafted so far, none accepted"
        return SpeculationVerdict(agreement=Agreement.UNCONFIRMED, why=why)
    if drafts and acceptance_length is not None:
        if acceptance_length > 1:
            why = f"{acceptance_length:.2f} tokens a step"
            return SpeculationVerdict(agreement=Agreement.SAME, why=why)
        if drafts >= ENOUGH_DRAFTED_TOK:
            why = f"it never accepts: one token a step in {drafts:.0f} steps"
            return SpeculationVerdict(agreement=Agreement.CONTRADICTED, why=why)
    if always_drafts and (drafts == 0 or drafted == 0):
        return SpeculationVerdict(agreement=Agreement.IGNORED, why="text was generated and nothing drafted")
    return SpeculationVerdict(agreement=Agreement.UNCONFIRMED, why="nothing was drafted so far")


def compare_speculation(declared: Speculative, evidence: Evidence) -> Compared:
    """Off where it was declared; of another method or length; never accepting; else as far as it is told."""
    wanted: dict[str, Json] = {"method": declared.method, "num_tokens": declared.num_tokens, "model": declared.model}
    if (refused := evidence.notice("speculative", NoticeKind.IGNORED)) is not None:
        return confess(PATH, wanted, refused)
    if (given_up := evidence.notice("speculative", NoticeKind.CHANGED)) is not None:
        return confess(PATH, wanted, given_up, is_weaker=True)
    config, running = evidence.best("speculative"), evidence.best("speculates")
    if config is not None and config.value is None:
        return agree(PATH, wanted, Agreement.IGNORED, config, why="it runs without speculation")
    if running is not None and running.value is False:
        return agree(PATH, wanted, Agreement.IGNORED, running, why="it runs without speculation")
    if config is not None and (difference := _difference(declared, config.value)):
        return agree(PATH, wanted, Agreement.CONTRADICTED, config, why=difference)
    method = evidence.best("speculative_method")
    if method is not None and method_of(str(method.value)) != method_of(declared.method):
        return agree(PATH, wanted, Agreement.CONTRADICTED, method, why="it speculates in another way")
    return _counted(declared, wanted, evidence, config or method or running)


def _counted(declared: Speculative, wanted: Mapping[str, Json], evidence: Evidence, shown: Reading | None) -> Compared:
    """The counters have the last word; without traffic what is configured stands."""
    numbers = {name: _number(evidence, name) for name in ("drafts", "drafted_tok", "accepted_tok", "acceptance_length")}
    is_counting = numbers["drafts"] is not None
    has_counters = any(name.startswith("vllm:") for name in evidence.told.metrics)
    if evidence.engine == "vllm" and has_counters and not is_counting:
        # vLLM has these counters from the start, and only with speculation; without statistics it has none at all.
        why = "there are no counters of speculation, so it is off"
        return Compared(path=PATH, declared=wanted, agreement=Agreement.IGNORED, source="metrics", why=why)
    verdict = judge_speculation(
        numbers["drafts"],
        numbers["drafted_tok"],
        numbers["accepted_tok"],
        acceptance_length=numbers["acceptance_length"],
    )
    source = evidence.best("accepted_tok") or evidence.best("acceptance_length") or shown
    if verdict.agreement is not Agreement.UNCONFIRMED and source is not None:
        return agree(PATH, wanted, verdict.agreement, source, why=verdict.why)
    if shown is not None:
        return agree(PATH, wanted, Agreement.SAME, shown, why=f"{verdict.why}: acceptance is not shown")
    return untold(PATH, wanted, verdict.why if is_counting else "the engine has no place that tells")


def _difference(declared: Speculative, running: Json) -> str | None:
    if not isinstance(running, Mapping):
        return None
    method, count, model = running.get("method"), running.get("num_tokens"), running.get("model")
    if isinstance(method, str) and not _is_same_method(declared.method, method):
        return f"it speculates with {method}"
    if isinstance(count, int | float) and count != declared.num_tokens:
        return f"it drafts {count:g} tokens"
    if declared.model and isinstance(model, str) and model != declared.model:
        return f"it drafts with {model}"
    return None


def _is_same_method(declared: str, running: str) -> bool:
    """SGLang runs NEXTN as EAGLE: with the model's own heads the two are one."""
    pair = (method_of(declared), method_of(running))
    return pair[0] == pair[1] or pair == ("mtp", "eagle")


def _number(evidence: Evidence, name: str) -> float | None:
    reading = evidence.best(name)
    return float(reading.value) if reading is not None and isinstance(reading.value, int | float) else None
