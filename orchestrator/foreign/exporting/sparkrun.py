"""A sparkrun recipe, version 2.

Theory of operation. sparkrun writes each `{key}` of its command over with the default of that name, again and again
until nothing changes, and leaves what it does not know; the result is run by bash. JSON's own braces therefore stay
single, and doubling them would reach the server doubled. Settings that people turn (`-o max_num_seqs=16`) and JSON
become defaults, the rest stands in the command. What comes out is checked by doing the same here; a word that would be
written over by chance is split by a pair of quotes (`{po''rt}`), which only bash sees.

sparkrun starts containers on a shell of its own, so the program stands in the command and the entrypoint is cleared.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.engines.images import split_image
from orchestrator.foreign.exporting.common import (
    Exported,
    ExportedFile,
    Rank,
    Subject,
    Unsaid,
    common_unsaid,
    header,
    mount_word,
    one_line,
    option_rows,
    refuse_process,
)
from orchestrator.foreign.exporting.yaml_text import Block, Value, document, scalar
from orchestrator.profile.model import Profile, PullPolicy
from orchestrator.values import Secret

FORM = "sparkrun"
RUNTIMES = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama-cpp"}
DEFAULTS = {
    "--host": "host",
    "--port": "port",
    "--served-model-name": "served_model_name",
    "--alias": "served_model_name",
    "--tensor-parallel-size": "tensor_parallel",
    "--gpu-memory-utilization": "gpu_memory_utilization",
    "--mem-fraction-static": "gpu_memory_utilization",
    "--max-model-len": "max_model_len",
    "--context-length": "max_model_len",
    "-c": "ctx_size",
    "--max-num-seqs": "max_num_seqs",
    "--max-running-requests": "max_num_seqs",
    "-np": "parallel",
    "--max-num-batched-tokens": "max_num_batched_tokens",
    "--chunked-prefill-size": "max_num_batched_tokens",
    "--kv-cache-dtype": "kv_cache_dtype",
    "--quantization": "quantization",
    "--tool-call-parser": "tool_call_parser",
    "--reasoning-parser": "reasoning_parser",
}
"""Options whose value becomes a default, and sparkrun's name for it."""
LONGEST = 200_000
"""No command is longer: a value that speaks of itself would grow for ever."""

_SIMPLE = re.compile(r"[A-Za-z0-9_./:@+-]+")
_PLACEHOLDER = re.compile(r"\{(.*?)\}")
_KEY = re.compile(r"\{[A-Za-z_][A-Za-z0-9_.-]*\}")


def export(subject: Subject) -> Exported:
    """One recipe, for one host or for as many as the profile spans.

    Raises:
        InputError: The profile runs without Docker.
    """
    refuse_process(subject, FORM)
    rank = subject.ranks[0]
    unsaid = (*(u for u in common_unsaid(subject) if u.path != "nodes"), *_unsaid(subject, rank))
    text = "".join(f"# {line}".rstrip() + "\n" for line in header(subject, rank, unsaid)) + document(
        _recipe(subject, rank)
    )
    return Exported(files=(ExportedFile(name=f"{subject.profile.name}.sparkrun.yaml", text=text),), unsaid=unsaid)


def rendered(template: str, defaults: Mapping[str, object]) -> str:
    """A command as sparkrun renders it: known `{key}`s replaced until nothing changes."""

    def value(found: re.Match[str]) -> str:
        known = defaults.get(found[0].strip("{}"))
        return found[0] if known is None else str(known)

    before = None
    while before != template and len(template) < LONGEST:
        before, template = template, _PLACEHOLDER.sub(value, template)
    return template


def _recipe(subject: Subject, rank: Rank) -> dict[str, Value]:
    profile = subject.profile
    template, defaults = _template(profile, rank)
    env = {name: f"${{{v.name}}}" if isinstance(v, Secret) else v for name, v in _env(rank).items()}
    entries: dict[str, Value | None] = {
        "recipe_version": "2",
        "name": profile.name,
        "description": one_line(profile.label),
        "model": profile.model.repo or profile.model.path,
        "model_revision": profile.model.revision,
        "runtime": RUNTIMES.get(profile.engine),
        "container": rank.spec.image,
        "min_nodes": profile.nodes if profile.nodes > 1 else None,
        "max_nodes": profile.nodes,
        "defaults": defaults or None,
        "env": env or None,
        "executor_config": _executor(rank),
        "command": Block(template + "\n"),
    }
    return {key: value for key, value in entries.items() if value is not None}


def _executor(rank: Rank) -> dict[str, Value]:
    """Settings of the container, where they are not sparkrun's own (`network: host`, `ipc: host`, all GPUs)."""
    spec = rank.spec
    entries: dict[str, Value | None] = {
        "entrypoint": "",
        "network": None if spec.network == "host" else spec.network,
        "ipc": None if spec.ipc == "host" else spec.ipc or "private",
        "shm_size": None if spec.shm_bytes is None else str(spec.shm_bytes),
        "ulimit": [f"{name}={limit}:{limit}" for name, limit in spec.ulimits.items()] or None,
        "volumes": [mount_word(m.source, m.target, read_only=m.read_only) for m in spec.mounts] or None,
        "restart_policy": None if spec.restart == "no" else spec.restart,
    }
    return {key: value for key, value in entries.items() if value is not None}


def _template(profile: Profile, rank: Rank) -> tuple[str, dict[str, Value]]:
    """The command and the defaults that its placeholders stand for."""
    words = _words(profile, rank)
    rows = option_rows(words)
    model = profile.model.repo or profile.model.path
    keys = _keys(rows)
    defaults: dict[str, Value] = {key: _typed(rows[index][1]) for index, key in keys.items()}
    known = {**defaults, "model": model}
    template = " \\\n  ".join(_shown(row, keys.get(index), known) for index, row in enumerate(rows))
    if _split(rendered(template, known)) == words:
        return template, defaults
    # A value that speaks of another default would be written over too: then everything stands in the command.
    alone = {"model": model}
    return " \\\n  ".join(_shown(row, None, alone) for row in rows), {}


def _keys(rows: Sequence[Sequence[str]]) -> dict[int, str]:
    """Which rows have a value that becomes a default, and under which name; a name is given once."""
    found: dict[int, str] = {}
    for index, (name, *values) in enumerate(rows):
        key = _default_key(name, values[0]) if len(values) == 1 else None
        if key is not None and key not in {*found.values(), "model"}:
            found[index] = key
    return found


def _shown(row: Sequence[str], key: str | None, known: Mapping[str, object]) -> str:
    """A row as it stands in the command; `key` is the default that stands for its value."""
    if key is not None:
        return f"{row[0]} '{{{key}}}'" if str(known[key]).startswith("{") else f"{row[0]} {{{key}}}"
    return " ".join("{model}" if word == known["model"] and _SIMPLE.fullmatch(word) else _literal(word) for word in row)


def _literal(word: str) -> str:
    """A quoted word in which no `{key}` is left to be found: `'{port}'` -> `'{p''ort}'`."""
    return _KEY.sub(lambda found: f"{found[0][:2]}''{found[0][2:]}", shlex.quote(word))


def _default_key(name: str, value: str) -> str | None:
    if name in DEFAULTS and _SIMPLE.fullmatch(value):
        return DEFAULTS[name]
    if name.startswith("--") and _is_json(value) and "'" not in value and not _KEY.search(value):
        key = name[2:].replace("-", "_")
        return key if key.isidentifier() else None
    return None


def _is_json(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def _typed(value: str) -> int | float | str:
    """A number where YAML gives back the very same digits."""
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        if str(number) == value and scalar(number) == value:
            return number
    return value


def _split(command: str) -> tuple[str, ...]:
    return tuple(shlex.split(command.replace("\\\n", " ")))


def _words(profile: Profile, rank: Rank) -> tuple[str, ...]:
    """The whole command, program first; what sparkrun itself says of several hosts is left to it."""
    command = rank.command
    origins = command.origins or ("",) * len(command.argv)
    own = tuple(word for word, origin in zip(command.argv, origins, strict=True) if origin != "nodes")
    if rank.spec.entrypoint is not None:
        return (*rank.spec.entrypoint, *own)
    return (*_program(profile, own), *own)


def _program(profile: Profile, words: Sequence[str]) -> tuple[str, ...]:
    """What the image's own entrypoint would start."""
    if profile.engine == "vllm" and words[:1] != ("vllm",):
        return ("vllm", "serve")
    if profile.engine == "llamacpp":
        is_official = split_image(profile.image or "")[0].endswith("ggml-org/llama.cpp")
        return ("/app/llama-server",) if is_official else ("llama-server",)
    return ()


def _env(rank: Rank) -> dict[str, str | Secret]:
    """Variables but those that the engine module sets for several hosts, which sparkrun sets itself."""
    return {
        name: value
        for name, value in rank.spec.env.items()
        if name not in rank.command.env or "nodes" not in rank.command.origins
    }


def _unsaid(subject: Subject, rank: Rank) -> Iterator[Unsaid]:
    spec, profile = rank.spec, subject.profile
    if profile.engine not in RUNTIMES:
        yield Unsaid(
            path="engine", message=f"sparkrun has no runtime for {profile.engine}; it guesses from the command"
        )
        if spec.entrypoint is None:
            yield Unsaid(
                path="container.entrypoint", message="write the image's own program before the command: it is cleared"
            )
    if spec.mounts:
        yield Unsaid(path="container.mounts", message="sparkrun before 0.3 ignores them, but for its own model cache")
    if spec.ports:
        yield Unsaid(path="container.ports", message="sparkrun publishes no ports; use network: host")
    if not spec.gpus:
        yield Unsaid(path="container.gpus", message="sparkrun always asks for the GPUs")
    if profile.pull is not PullPolicy.MISSING:
        yield Unsaid(path="pull", message=f"{profile.pull.value}: how sparkrun gets images is its builder's")
    if profile.expose == "loopback" and spec.network != "host":
        yield Unsaid(path="expose", message="loopback: nothing is published at all")
    if profile.nodes > 1:
        yield Unsaid(path="nodes", message="ranks, addresses and their ports are sparkrun's to set")
    for name, value in _env(rank).items():
        if isinstance(value, Secret):
            yield Unsaid(
                path=f"env.{name}", message=f"sparkrun 0.2 fills in ${value.name}; later ones: cluster env file"
            )
        elif "$" in value:
            yield Unsaid(path=f"env.{name}", message="sparkrun 0.2 takes what follows a $ for a variable")
