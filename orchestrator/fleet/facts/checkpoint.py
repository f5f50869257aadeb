"""Whether a model's checkpoint, as it lies on a host, holds weights for multi-token prediction.

The precision in a repository's name says nothing of it: a quantised copy may keep those layers or drop them. What tells
is the list of tensors: the index of a sharded checkpoint, the header of a single file, the head of a GGUF. Nothing is
downloaded, and no more than the head of a file is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import basename
from typing import Any

from orchestrator.errors import CommandTimedOut
from orchestrator.fleet.host import Host
from orchestrator.profile.model import Profile

HEAD_BYTES = 64 * 1024 * 1024
"""A safetensors header takes some 100 KB; a GGUF's tensors are listed after its vocabulary, some 10 MB in."""
_TIMEOUT_S = 20.0
_MTP = r"\"([A-Za-z0-9_]+\.)*mtp[._]|\.(eh_proj|enorm|hnorm)\."
"""Tensors of Qwen, MiMo and their like; and what DeepSeek's and GLM's extra layer has beside a usual one."""
_GGUF = r"blk\.[0-9]+\.nextn\.|nextn_predict_layers|blk\.0\."
SCAN = 'head -c "$1" -- "$3" | LC_ALL=C grep -a -o -E -e "$2"'
"""Parameters: bytes of the file to look at, pattern, file."""


class Held(StrEnum):
    """YES and NO: read from a list of tensors. NOT_CACHED: none is there yet. UNKNOWN: what is there does not tell."""

    YES = "yes"
    NO = "no"
    NOT_CACHED = "not_cached"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MtpWeights:
    """The answer, and the file that gave it (None where none did)."""

    held: Held
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where on the host the checkpoint may lie.

    Attributes:
        repositories: Folders of one repository in a hub cache (`…/hub/models--org--name`).
        folders: Folders, or one file, that hold the checkpoint itself.
        downloads: Folders of llama.cpp's own cache, and what the names of its files begin with.
    """

    repositories: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    download_prefix: str = ""


def places_of(profile: Profile, home: str) -> Places:
    """Where to look for a profile's checkpoint, from its model and its mounts; named volumes cannot be looked into.

    Args:
        home: The SSH user's home, for `~`.
    """
    if profile.model.path:
        found = _on_host(profile, profile.model.path, home)
        return Places(folders=(found,) if found else ())
    repo = (profile.model.repo or "").partition(":")[0]
    if not repo:
        return Places()
    folder = f"models--{repo.replace('/', '--')}"
    hubs = [found for hub in _hubs(profile) if (found := _on_host(profile, hub, home)) is not None]
    caches = [m.target for m in profile.container.mounts if m.target.rstrip("/").endswith(".cache/llama.cpp")]
    downloads = [found for cache in caches if (found := _on_host(profile, cache, home)) is not None]
    return Places(
        repositories=tuple(dict.fromkeys(f"{hub}/{folder}" for hub in hubs)),
        downloads=tuple(downloads),
        download_prefix=f"{repo.replace('/', '_')}_",
    )


def declares_mtp(profile: Profile) -> bool:
    """The profile wants the checkpoint's own layers to draft: mtp, in whatever words, without a draft of its own."""
    spec = profile.serve.speculative
    if spec is not None:
        return spec.method == "mtp" and spec.model is None
    flags = {key.lstrip("-").replace("_", "-"): value for key, value in profile.flags.items()}
    config = flags.get("speculative-config", flags.get("sc"))
    if isinstance(config, Mapping):
        return str(config.get("method", "")).endswith("mtp") and not config.get("model")
    if any(name in flags for name in ("spec-model", "speculative-draft-model-path", "spec-draft-model")):
        return False
    words = (flags.get("spec-method"), flags.get("spec-type"))
    is_nextn = str(flags.get("speculative-algorithm", "")).upper() == "NEXTN"
    return is_nextn or any(str(word).endswith("mtp") for word in words)


def read_mtp_weights(host: Host, profile: Profile, home: str) -> MtpWeights:
    """Ask the host. Late answers, and what cannot be looked into, are UNKNOWN.

    Raises:
        HostUnreachable: The connection broke.
    """
    places = places_of(profile, home)
    if not (places.repositories or places.folders or places.downloads):
        return MtpWeights(held=Held.UNKNOWN)
    try:
        return _read(host, places, profile)
    except CommandTimedOut:
        return MtpWeights(held=Held.UNKNOWN)


def find_argv(places: Places) -> tuple[str, ...]:
    """The command that lists the checkpoint's files: config, index, weights, and which snapshot is current."""
    roots = (*places.repositories, *places.folders)
    names = ("config.json", "*.safetensors.index.json", "*.safetensors", "*.gguf", "main")
    either = [word for name in names for word in ("-o", "-name", name)][1:]
    return ("find", "-L", *roots, "-maxdepth", "3", "-type", "f", "(", *either, ")")


def find_downloads_argv(places: Places) -> tuple[str, ...]:
    """The command that lists what llama.cpp downloaded of the repository."""
    pattern = f"{places.download_prefix}*.gguf"
    return ("find", "-L", *places.downloads, "-maxdepth", "1", "-type", "f", "-name", pattern)


def chosen_files(found: Sequence[str], *, revision: str | None, main: str | None) -> tuple[str, ...]:
    """Those of the snapshot that would be served; () when several are there and nothing says which.

    Args:
        found: As `find_argv` lists them. revision: as the profile has it. main: what `refs/main` holds.
    """
    snapshots = sorted({m[1] for file in found if (m := re.search(r"/snapshots/([^/]+)/", file))})
    if not snapshots:
        return tuple(sorted(file for file in found if basename(file) != "main"))
    wanted = [one for one in snapshots if one in {revision, main}] if revision or main else snapshots
    exact = [one for one in wanted if one == revision] or wanted
    if len(exact) != 1:
        return ()
    return tuple(sorted(file for file in found if f"/snapshots/{exact[0]}/" in file))


def extra_layers(config: Mapping[str, Any]) -> tuple[int, ...]:
    """Numbers of the layers after the model's own, which DeepSeek's and GLM's checkpoints predict with."""
    inner = config.get("text_config")
    held: Mapping[str, Any] = inner if isinstance(inner, Mapping) else config
    layers, extra = held.get("num_hidden_layers"), held.get("num_nextn_predict_layers")
    if not isinstance(layers, int) or not isinstance(extra, int):
        return ()
    return tuple(range(layers, layers + extra))


def tensor_pattern(layers: Sequence[int]) -> str:
    """What a name in an index or a safetensors header looks like when it is about multi-token prediction."""
    numbers = "|".join(str(layer) for layer in layers)
    return rf"{_MTP}|\.layers\.({numbers})\." if layers else _MTP


def judge_gguf(seen: Sequence[str]) -> Held:
    """From the pieces that SCAN found with the pattern for GGUF files, of all files of the model together."""
    if any(".nextn." in piece for piece in seen):
        return Held.YES
    # The key alone may stand there with a 0; without a first layer the list of tensors was not reached.
    is_listed = any(piece == "blk.0." for piece in seen)
    return Held.NO if is_listed and "nextn_predict_layers" not in seen else Held.UNKNOWN


def _read(host: Host, places: Places, profile: Profile) -> MtpWeights:
    found = _lines(host, find_argv(places)) if places.repositories or places.folders else ()
    mains = [file for file in found if file.endswith("/refs/main")]
    main = host.run(("cat", mains[0]), timeout_s=_TIMEOUT_S).stdout.strip() if mains else None
    files = chosen_files(found, revision=profile.model.revision, main=main or None)
    if places.downloads:
        files = (*files, *_lines(host, find_downloads_argv(places)))
    weights = [file for file in files if file.endswith((".safetensors", ".gguf", ".index.json"))]
    if not weights:
        has_several = any("/snapshots/" in file for file in found)
        return MtpWeights(held=Held.UNKNOWN if has_several else Held.NOT_CACHED)
    if all(file.endswith(".gguf") for file in weights):
        return _read_gguf(host, weights, profile)
    return _read_tensors(host, files)


def _read_tensors(host: Host, files: Sequence[str]) -> MtpWeights:
    config = next((file for file in files if basename(file) == "config.json"), None)
    told = _json(host.run(("cat", config), timeout_s=_TIMEOUT_S).stdout) if config else {}
    pattern = tensor_pattern(extra_layers(told))
    index = next((file for file in files if file.endswith(".index.json")), None)
    if index is not None:
        done = host.run(("grep", "-q", "-E", "-e", pattern, index), timeout_s=_TIMEOUT_S)
        held = {0: Held.YES, 1: Held.NO}.get(done.exit_code, Held.UNKNOWN)
        return MtpWeights(held=held, file=index)
    parts = [file for file in files if file.endswith(".safetensors")]
    for part in parts:
        if _scan(host, part, pattern):
            return MtpWeights(held=Held.YES, file=part)
    # A checkpoint in parts without its index may lack the very part that would tell.
    return MtpWeights(held=Held.NO if len(parts) == 1 else Held.UNKNOWN, file=parts[0])


def _read_gguf(host: Host, weights: Sequence[str], profile: Profile) -> MtpWeights:
    wanted = profile.model.file or (profile.model.repo or "").partition(":")[2]
    named = [file for file in weights if wanted.lower() in file.lower()] or list(weights)
    if len({_unsplit(file) for file in named}) != 1:
        return MtpWeights(held=Held.UNKNOWN)
    seen = [piece for file in named for piece in _scan(host, file, _GGUF)]
    return MtpWeights(held=judge_gguf(seen), file=named[0])


def _scan(host: Host, file: str, pattern: str) -> tuple[str, ...]:
    return _lines(host, ("sh", "-c", SCAN, "sh", str(HEAD_BYTES), pattern, file))


def _lines(host: Host, argv: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line for line in host.run(argv, timeout_s=_TIMEOUT_S).stdout.splitlines() if line)


def _json(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unsplit(file: str) -> str:
    """One name for all parts of a split GGUF: `x-00002-of-00003.gguf` -> `x.gguf`."""
    return re.sub(r"-\d{5}-of-\d{5}(?=\.gguf$)", "", file)


def _hubs(profile: Profile) -> tuple[str, ...]:
    """Hub caches as the server sees them."""
    env = {name: value for name, value in profile.env.items() if isinstance(value, str)}
    home = env.get("HF_HOME") or ("~/.cache/huggingface" if profile.binary else "/root/.cache/huggingface")
    mounted = [m.target for m in profile.container.mounts if m.target.rstrip("/").endswith(".cache/huggingface")]
    return tuple(dict.fromkeys((env.get("HF_HUB_CACHE") or f"{home}/hub", *(f"{target}/hub" for target in mounted))))


def _on_host(profile: Profile, path: str, home: str) -> str | None:
    """A path as the server sees it, on the host; None when nothing of the host is mounted there, or a named volume."""
    if profile.binary is not None:
        return _expanded(path, home)
    inside = [m for m in profile.container.mounts if f"{path}/".startswith(f"{m.target.rstrip('/')}/")]
    nearest = max(inside, key=lambda m: len(m.target), default=None)
    if nearest is None or not nearest.source.startswith(("/", "~")):
        return None
    return _expanded(nearest.source.rstrip("/") + path[len(nearest.target.rstrip("/")) :], home)


def _expanded(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path
