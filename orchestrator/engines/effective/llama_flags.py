"""llama-server's flags whose effect is told in another shape than they are given in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from orchestrator.engines.effective.evidence import Evidence, agree, confess, settle
from orchestrator.engines.effective.model import Agreement, Compared, Notice, NoticeKind
from orchestrator.engines.effective.sameness import Likeness, liken, number
from orchestrator.engines.given import Given

PAD_TOK = 256
"""A slot's context is rounded to a multiple of this."""


def _context(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """`-c` is the pool: a slot's context times the slots, or shared. 0 is the model's own length, or what fits."""
    slot, slots = evidence.best("max_model_len"), evidence.best("max_num_seqs")
    wanted, each = number(flag.value), number(slot.value) if slot else None
    if slot is None or wanted is None or each is None:
        return None
    changed = evidence.notice("max_model_len", NoticeKind.CHANGED)
    if wanted == 0:
        full = evidence.best("model_max_len")
        limit = number(full.value) if full else None
        if limit is None:
            return None
        if each >= limit:
            return agree(path, flag.value, Agreement.SAME, slot, why=f"0 is the model's own {limit:.0f}")
        row = agree(
            path, flag.value, Agreement.CONTRADICTED, slot, why=f"{each:.0f} fit of the model's own {limit:.0f}"
        )
        return _explained(replace(row, is_weaker=True), changed)
    is_shared = (unified := evidence.best("kv_unified")) is not None and liken(True, unified.value) is Likeness.SAME
    count = number(slots.value) if slots else None
    pool = each if is_shared else each * (count or 1)
    if wanted - pool < PAD_TOK * (count or 1) and (changed is None or pool >= wanted):
        shape = "shared by" if is_shared else "each for"
        why = f"{each:.0f} tokens {shape} {count:.0f} slots" if count else None
        return replace(agree(path, flag.value, Agreement.SAME, slot, why=why), running=int(pool))
    why = f"a pool of {pool:.0f} tokens where {wanted:.0f} was declared"
    row = replace(agree(path, flag.value, Agreement.CONTRADICTED, slot, why=why), running=int(pool), is_weaker=True)
    return _explained(row, changed)


def _explained(row: Compared, changed: Notice | None) -> Compared:
    """The same row as CHANGED when the engine says so itself."""
    if changed is None:
        return row
    return replace(row, agreement=Agreement.CHANGED, source="log", quote=changed.quote)


def _slots(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """`-1` lets the server choose."""
    return settle(path, "auto" if str(flag.value) == "-1" else flag.value, "max_num_seqs", evidence)


def _gpu_layers(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    layers = evidence.best("layers_offloaded")
    if layers is None:
        return None
    wanted = number(flag.value)
    done, total = (int(n) for n in str(layers.value).split("/"))
    if str(flag.value) in ("auto", "-1"):
        return agree(path, flag.value, Agreement.SAME, layers, why=f"auto -> {done} of {total}")
    asked = total if wanted is None or wanted < 0 else min(int(wanted), total)
    if done == asked:
        return agree(path, flag.value, Agreement.SAME, layers)
    if done == 0:
        return agree(path, flag.value, Agreement.IGNORED, layers, why="all weights lie in the host's memory")
    row = agree(path, flag.value, Agreement.CONTRADICTED, layers, why=f"{done} of {total} layers are on the GPU")
    return replace(row, is_weaker=done < asked)


def _spec_type(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    if (refused := evidence.notice("speculative", NoticeKind.IGNORED)) is not None:
        return confess(path, flag.value, refused)
    running = evidence.best("speculates")
    if running is not None and running.value is False and flag.value != "none":
        return agree(path, flag.value, Agreement.IGNORED, running, why="it runs without speculation")
    row = settle(path, flag.value, "speculative_method", evidence)
    if row is None and running is not None:
        return agree(path, flag.value, Agreement.SAME, running, why="it speculates; how is logged with -lv 4 only")
    return row


def _cache_prompt(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    hits = evidence.best("cached_tok")
    if hits is None or not number(hits.value):
        return None
    agreement = Agreement.SAME if flag.value is True else Agreement.CONTRADICTED
    why = f"it served {number(hits.value):g} tokens from its cache"
    return replace(agree(path, flag.value, agreement, hits, why=why), running=True)


def _untold(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """What is told under this name is another thing: a file's path beside a repository, a text beside a path."""
    return None


LlamaJudge = Callable[[str, Given, Evidence], Compared | None]
LLAMA_JUDGES: Mapping[str, LlamaJudge] = {
    "ctx-size": _context,
    "parallel": _slots,
    "gpu-layers": _gpu_layers,
    "spec-type": _spec_type,
    "cache-prompt": _cache_prompt,
    "hf-repo": _untold,
    "chat-template": _untold,
    "reasoning": _untold,
    "predict": _untold,
}
