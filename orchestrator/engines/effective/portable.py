"""The portable settings, each beside what runs: one small function where a setting has rules of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import PurePosixPath

from orchestrator.engines.effective.evidence import LOGGED_WHEN_VERBOSE, Evidence, agree, confess, settle, untold
from orchestrator.engines.effective.model import Agreement, Compared, NoticeKind, Reading
from orchestrator.engines.effective.sameness import Likeness, kv_bits, liken, number
from orchestrator.engines.effective.speculation import compare_speculation
from orchestrator.profile.model import ModelRef, PrefixCheckpoint, Profile
from orchestrator.values import Json

Judge = Callable[[Profile, Evidence], Compared | None]
PAD_TOK = 256
"""llama-server rounds a context up to a multiple of this."""


def compare_identity(profile: Profile, evidence: Evidence) -> Iterator[Compared]:
    """The model, its revision, the name under which it is served; slots as stated of another's server."""
    if profile.model.display != ModelRef().display:
        yield _model(profile.model, evidence)
    if profile.model.revision is not None:
        revision = settle("model.revision", profile.model.revision, "revision", evidence)
        yield revision or untold("model.revision", profile.model.revision)
    if profile.served_name is not None:
        yield _served_name(profile.served_name, evidence)
    if profile.slots is not None:
        row = _number_row("slots", profile.slots, "max_num_seqs", evidence)
        yield row or untold("slots", profile.slots, "the server does not tell how many requests it runs at once")


def compare_portable(profile: Profile, evidence: Evidence) -> Iterator[Compared]:
    """One row for each declared `serve` setting, in the order of the profile's model."""
    for field in fields(profile.serve):
        value = getattr(profile.serve, field.name)
        if value is None:
            continue
        judge = JUDGES.get(field.name)
        row = judge(profile, evidence) if judge else settle(f"serve.{field.name}", value, field.name, evidence)
        yield row or untold(f"serve.{field.name}", _declared(field.name, value))


def _declared(name: str, value: object) -> Json:
    if isinstance(value, PrefixCheckpoint):
        return {"match_unit": value.match_unit}
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, bool | int | float | str) else f"({name})"


def _model(model: ModelRef, evidence: Evidence) -> Compared:
    reading = evidence.best("model")
    declared = model.display
    if reading is None or not isinstance(reading.value, str):
        return untold("model", declared)
    running = reading.value
    if running == declared or _is_copy_of(model, running):
        return agree("model", declared, Agreement.SAME, reading)
    if evidence.engine == "llamacpp" and model.path is None:
        return agree("model", declared, Agreement.UNCONFIRMED, reading, why="a file whose name tells no repository")
    if model.path is not None and PurePosixPath(running).name == PurePosixPath(model.path).name:
        why = "another path to a file or folder of this name"
        return agree("model", declared, Agreement.UNCONFIRMED, reading, why=why)
    return agree("model", declared, Agreement.CONTRADICTED, reading, why="another model is served")


def _is_copy_of(model: ModelRef, running: str) -> bool:
    """The hub's cache names a folder `models--OWNER--NAME`, llama-server a file `OWNER_NAME_FILE`."""
    repo = (model.repo or "").partition(":")[0]
    if not repo:
        return False
    in_cache = f"models--{repo.replace('/', '--')}" in running or repo.replace("/", "_") in running
    return in_cache and (model.file is None or running.endswith(PurePosixPath(model.file).name))


def _served_name(declared: str, evidence: Evidence) -> Compared:
    reading = evidence.best("served_name")
    if reading is None:
        return untold("served_name", declared, "the server lists no models")
    names = reading.value if isinstance(reading.value, list | tuple) else [reading.value]
    if declared in names:
        return agree("served_name", declared, Agreement.SAME, reading)
    return agree("served_name", declared, Agreement.CONTRADICTED, reading, why="it is not among the served names")


def _max_model_len(profile: Profile, evidence: Evidence) -> Compared | None:
    """Tokens of one request: shorter than promised fails, whatever the engine says of it."""
    path, declared = "serve.max_model_len", profile.serve.max_model_len
    reading = evidence.best("max_model_len")
    pool = evidence.best("kv_pool_tok")
    wanted = number(declared)
    if reading is None or wanted is None:
        return settle(path, declared, "max_model_len", evidence)
    running = number(reading.value)
    if running is not None and running >= wanted and evidence.engine == "sglang" and pool is not None:
        held = number(pool.value)
        if held is not None and held < wanted:
            why = f"the KV pool holds {held:.0f} tokens, less than one request of this length"
            return replace(agree(path, declared, Agreement.CONTRADICTED, pool, why=why), is_weaker=True)
    if evidence.engine == "llamacpp" and running is not None and wanted < running <= wanted + PAD_TOK:
        return agree(path, declared, Agreement.SAME, reading, why=f"rounded up to a multiple of {PAD_TOK}")
    row = _number_row(path, declared, "max_model_len", evidence)
    unified = evidence.best("kv_unified")
    slots = evidence.best("max_num_seqs")
    if row and row.agreement is Agreement.SAME and unified and liken(True, unified.value) is Likeness.SAME and slots:
        return replace(row, why=f"one pool that {slots.value} slots share")
    return row


def _max_num_seqs(profile: Profile, evidence: Evidence) -> Compared | None:
    return _number_row("serve.max_num_seqs", profile.serve.max_num_seqs, "max_num_seqs", evidence)


def _max_num_batched_tokens(profile: Profile, evidence: Evidence) -> Compared | None:
    name = "max_num_batched_tokens"
    row = settle(f"serve.{name}", profile.serve.max_num_batched_tokens, name, evidence)
    if row is None and evidence.engine == "llamacpp":
        return untold(f"serve.{name}", profile.serve.max_num_batched_tokens, LOGGED_WHEN_VERBOSE)
    return row


def _number_row(path: str, declared: Json, name: str, evidence: Evidence) -> Compared | None:
    """A promise of so many: with less the row is weaker."""
    row = settle(path, declared, name, evidence)
    if row is None or row.agreement in (Agreement.SAME, Agreement.UNCONFIRMED):
        return row
    promised, running = number(declared), number(row.running)
    changed = evidence.notice(name, NoticeKind.CHANGED)
    if row.agreement is Agreement.CONTRADICTED and changed is not None and changed.value is not None:
        row = replace(confess(path, declared, changed), running=row.running)
    is_less = promised is not None and running is not None and running < promised
    return replace(row, is_weaker=is_less, why=_less(promised, running) if is_less else row.why)


def _less(promised: float | None, running: float | None) -> str:
    return f"{running:g} where {promised:g} was promised"


def _memory(profile: Profile, evidence: Evidence) -> Compared | None:
    return settle("serve.memory_fraction", profile.serve.memory_fraction, "memory_fraction", evidence)


def _prefix_caching(profile: Profile, evidence: Evidence) -> Compared | None:
    path, wanted = "serve.prefix_caching", profile.serve.prefix_caching
    given_up = evidence.notice("prefix_caching", NoticeKind.CHANGED)
    if given_up is not None and wanted:
        return confess(path, wanted, given_up, is_weaker=True)
    hits = evidence.best("cached_tok")
    if hits is not None and (number(hits.value) or 0) > 0:
        agreement = Agreement.SAME if wanted else Agreement.CONTRADICTED
        return replace(agree(path, wanted, agreement, hits, why=served_from_cache(hits)), running=True)
    reading = evidence.best("prefix_caching")
    if reading is None:
        why = "told only by its counters, once a prompt was repeated"
        return untold(path, wanted, why) if evidence.engine == "llamacpp" else None
    if liken(wanted, reading.value) is Likeness.SAME:
        until_seen = "configured; whether it hits is for the gates to see" if wanted else None
        return agree(path, wanted, Agreement.SAME, reading, why=until_seen)
    agreement = Agreement.IGNORED if wanted else Agreement.CONTRADICTED
    return agree(path, wanted, agreement, reading, why="its cache is off" if wanted else "its cache is on")


def served_from_cache(hits: Reading) -> str:
    """What a counter of cached tokens above 0 shows."""
    return f"it served {number(hits.value):g} tokens from its cache"


def _prefix_checkpoint(profile: Profile, evidence: Evidence) -> Compared | None:
    checkpoint = profile.serve.prefix_checkpoint
    if checkpoint is None:
        return None
    path = "serve.prefix_checkpoint"
    declared: Json = {"match_unit": checkpoint.match_unit}
    for name in ("enable_mamba_shared_prefix_checkpoint", "enable_mamba_fine_grained_prefix_cache"):
        reading = evidence.best(name)
        if reading is not None and liken(True, reading.value) is not Likeness.SAME:
            return agree(path, declared, Agreement.IGNORED, reading, why="checkpoints are off")
    row = settle(path, checkpoint.match_unit, "prefix_match_unit", evidence)
    return None if row is None else replace(row, declared=declared)


def _kv_cache_dtype(profile: Profile, evidence: Evidence) -> Compared | None:
    """Coarser than declared is weaker; llama-server keeps K and V apart."""
    path, declared = "serve.kv_cache_dtype", profile.serve.kv_cache_dtype
    names = ("kv_cache_dtype_k", "kv_cache_dtype_v") if evidence.engine == "llamacpp" else ("kv_cache_dtype",)
    rows = [row for name in names if (row := settle(path, declared, name, evidence)) is not None]
    if not rows:
        return untold(path, declared, LOGGED_WHEN_VERBOSE) if len(names) > 1 else None
    row = next((r for r in rows if r.agreement is not Agreement.SAME), rows[0])
    before, after = kv_bits(str(declared)), kv_bits(str(row.running))
    is_coarser = before is not None and after is not None and after < before
    return replace(row, is_weaker=is_coarser and row.agreement is not Agreement.SAME)


def _quantization(profile: Profile, evidence: Evidence) -> Compared | None:
    """`awq` may run as `awq_marlin`, `modelopt` as `modelopt_fp4`: the same weights through a kernel of their own."""
    path, declared = "serve.quantization", profile.serve.quantization
    row = settle(path, declared, "quantization", evidence)
    if row is None or row.agreement is not Agreement.CONTRADICTED or not isinstance(row.running, str):
        return row
    if row.running.replace("-", "_").startswith(f"{str(declared).replace('-', '_')}_"):
        return replace(row, agreement=Agreement.SAME, why=f"{declared} runs as {row.running}")
    return row


def _thinking(profile: Profile, evidence: Evidence) -> Compared | None:
    path, wanted = "serve.thinking", profile.serve.thinking
    if evidence.engine != "llamacpp":
        row = settle(path, {"enable_thinking": wanted}, "template_hints", evidence)
        return None if row is None else replace(row, declared=wanted)
    reading = evidence.best("can_think")
    if reading is None:
        return untold(path, wanted, LOGGED_WHEN_VERBOSE)
    if liken(wanted, reading.value) is Likeness.SAME:
        return agree(path, wanted, Agreement.SAME, reading)
    why = "the chat template has no thinking to switch on" if wanted else "the chat template thinks all the same"
    return agree(path, wanted, Agreement.IGNORED, reading, why=why)


def _thinking_budget(profile: Profile, evidence: Evidence) -> Compared | None:
    path, wanted = "serve.thinking_budget", profile.serve.thinking_budget
    row = settle(path, {"thinking_budget": wanted}, "template_hints", evidence)
    return None if row is None else replace(row, declared=wanted)


def _max_output(profile: Profile, evidence: Evidence) -> Compared | None:
    path, wanted = "serve.max_output", profile.serve.max_output
    row = settle(path, {"max_new_tokens": wanted}, "generation_config_overrides", evidence)
    return None if row is None else replace(row, declared=wanted)


def _chat_template(profile: Profile, evidence: Evidence) -> Compared | None:
    """llama-server tells the template's text and not its file; vLLM repeats the path."""
    path, declared = "serve.chat_template", profile.serve.chat_template
    reading = evidence.best("chat_template")
    if reading is not None and evidence.engine == "llamacpp" and reading.value != declared:
        return agree(path, declared, Agreement.UNCONFIRMED, replace(reading, value="(its text)"), why="told as text")
    return settle(path, declared, "chat_template", evidence)


def _tool_call_parser(profile: Profile, evidence: Evidence) -> Compared | None:
    path, declared = "serve.tool_call_parser", profile.serve.tool_call_parser
    if evidence.engine != "llamacpp":
        return settle(path, declared, "tool_call_parser", evidence)
    caps = evidence.best("chat_template_caps")
    if caps is None or not isinstance(caps.value, Mapping):
        return None
    if caps.value.get("supports_tools") or caps.value.get("supports_tool_calls"):
        return agree(path, declared, Agreement.UNCONFIRMED, caps, why="it reads the format off its chat template")
    return agree(path, declared, Agreement.UNCONFIRMED, caps, why="its chat template knows no tools")


def _reasoning_parser(profile: Profile, evidence: Evidence) -> Compared | None:
    path, declared = "serve.reasoning_parser", profile.serve.reasoning_parser
    if evidence.engine == "llamacpp":
        return untold(path, declared, "llama-server reads it off the chat template")
    return settle(path, declared, "reasoning_parser", evidence)


def _speculative(profile: Profile, evidence: Evidence) -> Compared | None:
    spec = profile.serve.speculative
    return None if spec is None else compare_speculation(spec, evidence)


def _api_key(profile: Profile, evidence: Evidence) -> Compared | None:
    return untold("serve.api_key", "(secret)", "a key is never read back")


def _memory_gib(profile: Profile, evidence: Evidence) -> Compared | None:
    """Replaced by `comparing`, which knows the fraction that it became; here without a command line."""
    return untold("serve.memory_gib", profile.serve.memory_gib, "the engine knows a fraction only")


JUDGES: Mapping[str, Judge] = {
    "max_model_len": _max_model_len,
    "max_num_seqs": _max_num_seqs,
    "max_num_batched_tokens": _max_num_batched_tokens,
    "memory_fraction": _memory,
    "memory_gib": _memory_gib,
    "prefix_caching": _prefix_caching,
    "prefix_checkpoint": _prefix_checkpoint,
    "speculative": _speculative,
    "tool_call_parser": _tool_call_parser,
    "reasoning_parser": _reasoning_parser,
    "kv_cache_dtype": _kv_cache_dtype,
    "quantization": _quantization,
    "chat_template": _chat_template,
    "thinking": _thinking,
    "thinking_budget": _thinking_budget,
    "max_output": _max_output,
    "api_key": _api_key,
}
"""Settings with rules of their own; the others are told under their own name and compared as they are."""
