"""What rules look at: a profile and its command line as named circumstances, each with where it was declared.

serve.max_num_seqs, container.shm_gib, env.NAME, nodes, …    the profile's own words; null: not declared
flag.max-num-seqs, flag.speculative-config.method            the command line's, whichever way they came there
image.name, image.tag, image.is_pinned, image.is_official    the image's name, digest and owner
model.name, model.family, model.state                        the repository or path, and what it is known to be
model.is_hybrid, model.is_moe, model.has_sliding_window,
model.has_sparse_attention                                   null: not known
prefix_caching                                               on, off, or what this version does when nothing is said
speculation, speculation.num_tokens                          the method in the portable word, however declared
memory_fraction                                              the engine's own, however declared
mounts                                                       targets inside the container
is_open                                                      its port can be reached from beyond the host's loopback
version                                                      the engine's, as the image tells it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from ipaddress import ip_address

from orchestrator.engines.images import Version, is_older, split_image
from orchestrator.engines.rules.argv import GivenFlag
from orchestrator.engines.rules.families import Family, find_family
from orchestrator.engines.rules.matching import number
from orchestrator.engines.rules.versions import dotted
from orchestrator.profile.model import Profile, RuntimeKind
from orchestrator.values import Json

METHODS = {
    "nextn": "mtp",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "dflash": "dflash",
    "dspark": "dspark",
    "ngram": "ngram",
    "ngram_gpu": "ngram",
    "standalone": "draft_model",
    "draft-mtp": "mtp",
    "draft-eagle3": "eagle3",
    "draft-dflash": "dflash",
    "draft-dspark": "dspark",
    "draft-simple": "draft_model",
}
"""The engines' words for a method, lower case, and ours; also `ngram-…` of llama-server and `…_mtp` of vLLM."""
UNNAMED = "unnamed"
"""Speculation whose method the engine reads off the draft model."""
_METHOD_FLAGS = ("speculative-config.method", "spec-method", "speculative-algorithm", "spec-type")
_DRAFT_FLAGS = (
    *("speculative-config.num_speculative_tokens", "spec-tokens"),
    *("speculative-num-steps", "speculative-num-draft-tokens", "spec-draft-n-max"),
)
_FRACTION_FLAGS = ("gpu-memory-utilization", "mem-fraction-static")
_STATE_FLAGS = ("mamba-", "enable-mamba-", "max-mamba-")
"""Flags that begin so are about a state that only a hybrid model has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A profile, what it comes to on a command line, and the engine's version; `look` is the one question."""

    profile: Profile
    flags: Mapping[str, GivenFlag] = field(default_factory=dict)
    version: Version | None = None
    is_official: bool = False

    @property
    def family(self) -> Family | None:
        return find_family(self.profile.model.repo or self.profile.model.path)

    def look(self, name: str) -> Json:
        """The value of a circumstance; None: not declared, or not known."""
        if name in DERIVED:
            return DERIVED[name](self)
        head, _, rest = name.partition(".")
        if head == "flag":
            return self._flag(rest)
        return _below(self.profile, name)

    def declared_at(self, name: str) -> str | None:
        """Path in the profile at which a circumstance was declared; None: nowhere."""
        head, _, rest = name.partition(".")
        if head == "flag":
            found = self.flags.get(rest.partition(".")[0])
            return (found.origin or None) if found is not None and self._flag(rest) is not None else None
        if name in _SPOKEN_BY:
            return next((place for one in _SPOKEN_BY[name] if (place := self.declared_at(one))), None)
        if name in DERIVED:
            return head if DERIVED[name](self) is not None and head in {"image", "model"} else None
        return name if _below(self.profile, name) not in (None, [], {}) else None

    def _flag(self, name: str) -> Json:
        key, *steps = name.split(".")
        found = self.flags.get(key)
        value = None if found is None else found.value
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def first(self, *names: str) -> Json:
        """The first of these flags that is given."""
        return next((value for name in names if (value := self._flag(name)) is not None), None)


def _below(profile: Profile, name: str) -> Json:
    value: object = profile
    head, *rest = name.split(".")
    for index, step in enumerate((head, *rest)):
        if isinstance(value, Mapping):
            value = value.get(".".join((head, *rest)[index:]))
            break
        value = getattr(value, step, None)
    return _plain(value)


def _plain(value: object) -> Json:
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return [_plain(inner) for inner in value] if isinstance(value, tuple | list) else str(value)


def _is_hybrid(here: Situation) -> bool | None:
    if here.family is not None:
        return here.family.is_hybrid
    # Of an unknown model, only words about such a state prove that there is one.
    is_proven = here.profile.serve.prefix_checkpoint is not None or any(
        name.startswith(_STATE_FLAGS) for name, given in here.flags.items() if given.value is not None
    )
    return True if is_proven else None


def _prefix_caching(here: Situation) -> bool | None:
    """Declared by setting or flag; else what the version does by itself (vLLM kept it off on hybrids before 0.28)."""
    declared = here.profile.serve.prefix_caching
    if declared is not None:
        return declared
    if here.profile.engine == "vllm":
        flag = here._flag("enable-prefix-caching")
        if isinstance(flag, bool):
            return flag
        return not (_is_hybrid(here) and is_older(here.version, (0, 28)))
    if here.profile.engine == "sglang":
        return here._flag("disable-radix-cache") is not True
    if here.profile.engine == "llamacpp":
        return here._flag("cache-prompt") is not False
    return None


def _speculation(here: Situation) -> str | None:
    if here.profile.serve.speculative is not None:
        return here.profile.serve.speculative.method
    found = here.first(*_METHOD_FLAGS)
    if found is None:
        return UNNAMED if here.first("speculative-config", "spec-model", "spec-draft-model") is not None else None
    word = str(found).lower()
    if word.startswith("ngram"):
        return "ngram"
    return "mtp" if word.endswith("mtp") else METHODS.get(word, word)


def _num_drafted(here: Situation) -> Json:
    spec = here.profile.serve.speculative
    return here.first(*_DRAFT_FLAGS) if spec is None else spec.num_tokens


def _memory_fraction(here: Situation) -> Json:
    declared = here.profile.serve.memory_fraction
    return here.first(*_FRACTION_FLAGS) if declared is None else declared


def _is_open(here: Situation) -> bool:
    """False where a container of its own network publishes the server's port on loopback addresses alone."""
    profile = here.profile
    if profile.expose != "network":
        return False
    settings = profile.container
    if profile.runtime is not RuntimeKind.DOCKER or settings.network == "host":
        return True
    port = profile.port or number(here.first("port"))
    published = [one for one in settings.ports if port is None or one.container == port]
    return not published or any(not _is_loopback(one.address) for one in published)


def _is_loopback(address: str | None) -> bool:
    try:
        return address == "localhost" or ip_address(address or "").is_loopback
    except ValueError:
        return False


def _of_family(read: Callable[[Family], Json]) -> Callable[[Situation], Json]:
    return lambda here: None if here.family is None else read(here.family)


DERIVED: Mapping[str, Callable[[Situation], Json]] = {
    "version": lambda here: None if here.version is None else dotted(here.version),
    "image.name": lambda here: split_image(here.profile.image)[0] if here.profile.image else None,
    "image.tag": lambda here: split_image(here.profile.image)[1] if here.profile.image else None,
    "image.is_pinned": lambda here: "@" in here.profile.image if here.profile.image else None,
    "image.is_official": lambda here: here.is_official if here.profile.image else None,
    "model.name": lambda here: here.profile.model.repo or here.profile.model.path,
    "model.family": _of_family(lambda family: family.name),
    "model.state": _of_family(lambda family: family.state),
    "model.is_hybrid": _is_hybrid,
    "model.is_moe": _of_family(lambda family: family.is_moe),
    "model.has_sliding_window": _of_family(lambda family: family.has_sliding_window),
    "model.has_sparse_attention": _of_family(lambda family: family.has_sparse_attention),
    "prefix_caching": _prefix_caching,
    "speculation": _speculation,
    "speculation.num_tokens": _num_drafted,
    "memory_fraction": _memory_fraction,
    "is_open": _is_open,
    "mounts": lambda here: [mount.target for mount in here.profile.container.mounts],
}
_SPOKEN_BY: Mapping[str, tuple[str, ...]] = {
    "prefix_caching": (
        *("serve.prefix_caching", "serve.prefix_checkpoint", "flag.enable-prefix-caching"),
        *("flag.disable-radix-cache", "flag.cache-prompt"),
    ),
    "speculation": (
        *("serve.speculative", *(f"flag.{name}" for name in _METHOD_FLAGS)),
        *("flag.speculative-config", "flag.spec-model", "flag.spec-draft-model"),
    ),
    "speculation.num_tokens": ("serve.speculative.num_tokens", *(f"flag.{name}" for name in _DRAFT_FLAGS)),
    "memory_fraction": ("serve.memory_fraction", "serve.memory_gib", *(f"flag.{name}" for name in _FRACTION_FLAGS)),
    "mounts": ("container.mounts",),
}
"""Where a circumstance that can be declared in several words was declared: the first that stands there."""
