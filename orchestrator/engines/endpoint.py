"""A server that someone else started: nothing is deployed, everything is gated and measured.

What `serve` and `slots` say is stated by the user and recorded as unverified until the server tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from orchestrator.engines.advice import advice
from orchestrator.engines.assembly import Problems
from orchestrator.engines.engine import Advisory, EngineCommand, Placement, Traits
from orchestrator.engines.generic import untranslated
from orchestrator.errors import InputError
from orchestrator.profile.model import Profile

NAME = "endpoint"
DEFAULT_PORTS = {"http": 80, "https": 443}
DEPLOYED_ONLY = ("image", "binary", "command", "args", "port")
TRAITS = Traits(
    cold_fields={"cache_salt": "{nonce}", "cache_prompt": False},
    slot_paths=(("/props", "total_slots"), ("/server_info", "max_running_requests")),
    length_fields={"ignore_eos": True},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address behind the Engine protocol."""

    name: str = NAME
    traits: Traits = field(default=TRAITS)

    def problems(self, profile: Profile) -> Problems:
        return (
            *_url_problems(profile.attach),
            *(
                (name, "nothing is deployed with engine: endpoint; leave it out")
                for name in DEPLOYED_ONLY
                if getattr(profile, name)
            ),
            *untranslated(profile, "the server is already there and takes no settings; leave it out"),
        )

    def command(self, profile: Profile, place: Placement) -> EngineCommand:
        problems = self.problems(profile)
        if problems or profile.attach is None:
            raise InputError("\n".join(f"{profile.name}: {path}: {message}" for path, message in problems))
        url = urlsplit(profile.attach)
        return EngineCommand(
            argv=(), port=url.port or DEFAULT_PORTS[url.scheme], slots=profile.slots or profile.serve.max_num_seqs
        )

    def advisories(self, profile: Profile) -> tuple[Advisory, ...]:
        return advice(self, profile)


def _url_problems(attach: str | None) -> Problems:
    if not attach:
        return (("attach", "endpoint needs the server's URL, http://HOST:PORT"),)
    url = urlsplit(attach)
    if url.scheme not in DEFAULT_PORTS or not url.hostname:
        return (("attach", f"not an http or https URL: {attach}"),)
    return ()


ENGINE = Endpoint()
