"""Any OpenAI-compatible server: its own image and a verbatim command, deployed and gated like the rest.

`serve` cannot be translated here. What it says of the server (how long a request may be, how many run at once, what is
cached, whether tools are claimed) is taken as a claim that the gates then hold the server to; the rest is refused.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from orchestrator.engines.advice import advice
from orchestrator.engines.assembly import Problems
from orchestrator.engines.engine import Advisory, EngineCommand, Placement, Traits
from orchestrator.engines.gpu_log import GPU_SYMPTOMS, HOST_SYMPTOMS, LAST_RESORT
from orchestrator.errors import InputError
from orchestrator.profile.model import GeneratedKey, Profile, RuntimeKind

NAME = "generic"
CLAIMS = (
    *("max_model_len", "max_num_seqs", "prefix_caching", "tool_call_parser", "reasoning_parser"),
    *("thinking", "max_output", "api_key"),
)
TRAITS = Traits(
    # Which of the two the server knows is not known; both are ignored by servers that know neither.
    cold_fields={"cache_salt": "{nonce}", "cache_prompt": False},
    length_fields={"ignore_eos": True},
    symptoms=(*GPU_SYMPTOMS, *HOST_SYMPTOMS, *LAST_RESORT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generic:
    """A verbatim command behind the Engine protocol."""

    name: str = NAME
    traits: Traits = field(default=TRAITS)

    def problems(self, profile: Profile) -> Problems:
        return (*_shape(profile), *untranslated(profile, "generic runs the command as it is; write it in command"))

    def command(self, profile: Profile, place: Placement) -> EngineCommand:
        problems = self.problems(profile)
        if problems or profile.port is None:
            raise InputError("\n".join(f"{profile.name}: {path}: {message}" for path, message in problems))
        return EngineCommand(
            argv=(*profile.command, *profile.args), port=profile.port, slots=profile.serve.max_num_seqs or profile.slots
        )

    def advisories(self, profile: Profile) -> tuple[Advisory, ...]:
        return advice(self, profile)


def untranslated(profile: Profile, message: str) -> Problems:
    """`serve` settings that are no claim about a server, and flags: nothing would carry them out."""
    declared = (
        item.name for item in dataclasses.fields(profile.serve) if getattr(profile.serve, item.name) is not None
    )
    settings = tuple((f"serve.{name}", message) for name in declared if name not in CLAIMS)
    generated = isinstance(profile.serve.api_key, GeneratedKey)
    keys = (
        (("serve.api_key", "gate0 cannot hand a generated key to this server; use {secret: NAME}"),)
        if generated
        else ()
    )
    return (*settings, *keys, *((f"flags.{key}", message) for key in profile.flags))


def _shape(profile: Profile) -> Problems:
    found = []
    if profile.runtime is RuntimeKind.DOCKER and not profile.image:
        found.append(("image", "runtime: docker needs an image"))
    if profile.runtime is RuntimeKind.PROCESS and not profile.binary:
        found.append(("binary", "runtime: process needs the server's executable"))
    if profile.port is None:
        found.append(("port", "generic needs the port that the command makes the server listen on"))
    if profile.attach:
        found.append(("attach", "only engine: endpoint attaches to a URL"))
    if profile.nodes != 1:
        found.append(("nodes", "generic runs one command on one host"))
    return tuple(found)


ENGINE = Generic()
