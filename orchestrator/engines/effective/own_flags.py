"""One flag of the engine's own beside what runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from orchestrator.engines.effective.evidence import LOGGED_WHEN_VERBOSE, Evidence, agree, confess, settle, untold
from orchestrator.engines.effective.lines import name_of
from orchestrator.engines.effective.llama_flags import LLAMA_JUDGES
from orchestrator.engines.effective.model import Agreement, Compared, NoticeKind
from orchestrator.engines.effective.sameness import Likeness, liken, number
from orchestrator.engines.effective.speculation import compare_speculation
from orchestrator.engines.flags.model import Flag
from orchestrator.engines.given import Given, find_flag
from orchestrator.profile.model import Speculative
from orchestrator.values import Json, read_json

LOGGED = frozenset(
    {
        *("batch-size", "ubatch-size", "cache-type-k", "cache-type-v", "flash-attn", "gpu-layers", "load-mode"),
        *("cache-ram", "ctx-checkpoints", "checkpoint-min-step"),
    }
)
"""llama-server's flags that only its verbose log tells of."""

PROMISES = frozenset({"max_model_len", "max_num_seqs", "ctx_size", "parallel"})
"""Readings of which less is worse."""

FlagJudge = Callable[[str, Given, Evidence], Compared | None]


def compare_flag(path: str, declared: Json, flag: Given, evidence: Evidence) -> Compared:
    """The row of one flag.

    1. The engine, or its list, says that it does nothing: IGNORED.
    2. What is told under its name decides (`settle`), but for the flags that mean something else than their name.
    3. vLLM lists what differs from the defaults, so a flag that it does not list has its default: SAME when that was
       declared, IGNORED when another value was.
    4. Otherwise UNCONFIRMED.
    """
    known = find_flag(flag.name, evidence.catalogue)
    name = name_of(flag.name, evidence.words)
    if (notice := evidence.notice(name, NoticeKind.IGNORED)) is not None:
        return confess(path, declared, notice)
    if known is not None and known.is_inert:
        version = evidence.catalogue.version if evidence.catalogue else ""
        said = f": {known.deprecated}" if known.deprecated else ""
        why = f"{flag.word} does nothing in {evidence.engine} {version}{said}"
        return Compared(path=path, declared=declared, agreement=Agreement.IGNORED, source="flag list", why=why)
    judge = JUDGES.get((evidence.engine, flag.name))
    row = judge(path, flag, evidence) if judge else settle(path, flag.value, name, evidence)
    if row is None:
        return _by_default(path, declared, flag, known, evidence)
    return _remarked(_weighed(replace(row, declared=declared), name, flag.value), name, evidence)


def _weighed(row: Compared, name: str, given: Json) -> Compared:
    if row.agreement is Agreement.SAME or name not in PROMISES:
        return row
    promised, running = number(given), number(row.running)
    is_less = promised is not None and running is not None and running < promised
    return replace(row, is_weaker=row.is_weaker or is_less)


def _remarked(row: Compared, name: str, evidence: Evidence) -> Compared:
    deprecated = evidence.notice(name, NoticeKind.DEPRECATED)
    if deprecated is None or row.agreement is not Agreement.SAME:
        return row
    return replace(row, quote=deprecated.quote, why="it works still; the engine calls it deprecated")


def _by_default(path: str, declared: Json, flag: Given, known: Flag | None, evidence: Evidence) -> Compared:
    if evidence.engine == "llamacpp" and flag.name in LOGGED:
        return untold(path, declared, LOGGED_WHEN_VERBOSE)
    if not evidence.has_echo:
        return untold(path, declared)
    if known is None or known.default is None or evidence.catalogue is None or evidence.catalogue.is_partial:
        return untold(path, declared, "not among the arguments that differ from their defaults")
    version = evidence.catalogue.version
    likeness = liken(flag.value, known.default, is_word=True)
    if likeness is Likeness.INCOMPARABLE:
        return untold(path, declared, "not among the arguments that differ from their defaults")
    if likeness is Likeness.SAME:
        why = f"the engine lists only what differs from its default, and this is the default in {version}"
        return Compared(path=path, declared=declared, agreement=Agreement.SAME, running=known.default, why=why)
    why = f"the engine does not list it, so its default holds ({version})"
    return Compared(path=path, declared=declared, agreement=Agreement.IGNORED, running=known.default, why=why)


def _names(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """Every declared name is served; there may be more (adapters)."""
    reading = evidence.best("served_name")
    if reading is None:
        return None
    value = flag.value.split(",") if isinstance(flag.value, str) else flag.value
    wanted = list(value) if isinstance(value, list | tuple) else [value]
    listed = reading.value if isinstance(reading.value, list | tuple) else [reading.value]
    missing = [name for name in wanted if name not in listed]
    if not missing:
        return agree(path, flag.value, Agreement.SAME, reading)
    why = f"not among the served names: {', '.join(str(name) for name in missing)}"
    return agree(path, flag.value, Agreement.CONTRADICTED, reading, why=why)


def _speculative_config(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    config = flag.value
    if isinstance(config, str):
        try:
            config = read_json(config)
        except ValueError:
            return None
    if not isinstance(config, Mapping):
        return None
    method, count, model = config.get("method"), config.get("num_speculative_tokens"), config.get("model")
    if isinstance(method, str) and isinstance(count, int):
        draft = model if isinstance(model, str) else None
        declared = Speculative(method=method, num_tokens=count, model=draft)
        return replace(compare_speculation(declared, evidence), path=path)
    ours: dict[str, Json] = {("num_tokens" if k == "num_speculative_tokens" else k): v for k, v in config.items()}
    return settle(path, ours, "speculative", evidence)


def _part_of_speculation(key: str) -> FlagJudge:
    def judge(path: str, flag: Given, evidence: Evidence) -> Compared | None:
        return settle(path, {key: flag.value}, "speculative", evidence)

    return judge


def _max_model_len(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """`-1` is `auto` here."""
    value = "auto" if str(flag.value) == "-1" else flag.value
    return settle(path, value, "max_model_len", evidence)


def _moe_backend(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """The log says `VLLM_CUTLASS` for `cutlass`: a name that has the declared one among its parts is that one."""
    row = settle(path, flag.value, "moe_backend", evidence)
    if row is None or row.agreement is not Agreement.CONTRADICTED:
        return row
    parts = str(row.running).lower().replace("-", "_").split("_")
    wanted = str(flag.value).lower().replace("-", "_").split("_")
    is_part = all(part in parts for part in wanted)
    return replace(row, agreement=Agreement.SAME, why=f"the engine calls it {row.running}") if is_part else row


def _algorithm(path: str, flag: Given, evidence: Evidence) -> Compared | None:
    """SGLang runs NEXTN as EAGLE."""
    row = settle(path, flag.value, "speculative_algorithm", evidence)
    if row is None or row.agreement is not Agreement.CONTRADICTED:
        return row
    if str(flag.value).upper() == "NEXTN" and str(row.running).upper() == "EAGLE":
        return replace(row, agreement=Agreement.SAME, why="NEXTN is EAGLE with the model's own heads")
    return replace(row, agreement=Agreement.IGNORED) if row.running is None else row


JUDGES: Mapping[tuple[str, str], FlagJudge] = {
    ("vllm", "served-model-name"): _names,
    ("vllm", "speculative-config"): _speculative_config,
    ("vllm", "spec-method"): _part_of_speculation("method"),
    ("vllm", "spec-tokens"): _part_of_speculation("num_tokens"),
    ("vllm", "spec-model"): _part_of_speculation("model"),
    ("vllm", "max-model-len"): _max_model_len,
    ("vllm", "moe-backend"): _moe_backend,
    ("sglang", "served-model-name"): _names,
    ("sglang", "speculative-algorithm"): _algorithm,
    ("llamacpp", "alias"): _names,
    **{("llamacpp", name): judge for name, judge in LLAMA_JUDGES.items()},
}
"""Flags that mean something else than what is told under their name."""
