"""What the profile and the server together say: claims for the gates, the load's target, the serving's identity."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.deploy.launch import reachable_port
from orchestrator.engines.engine import MetricNames, Traits
from orchestrator.records.record import GateRecord
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.truth import IN_FLIGHT
from orchestrator.values import Json
from orchestrator.wire.chat import Claims

if TYPE_CHECKING:
    from orchestrator.pipeline.road import Job, Road
    from orchestrator.wire.probe import Capabilities

OPEN_ENGINES = ("generic", "endpoint")
"""Servers of which only what they say is known."""
LEAST_UNIT_TOK = 16
"""Finer units are not believed: where two texts meet, their tokens merge, and a hit ends some tokens early or late."""
TAILNET = ipaddress.ip_network("100.64.0.0/10")
"""The carrier-grade range (RFC 6598) that tailnets take their addresses from."""


def claims_of(
    job: Job,
    found: Capabilities | None,
    *,
    exposed: Collection[str] = (),
    compared: tuple[Mapping[str, Json], ...] | None = None,
) -> Claims:
    """What the gates hold the server to: what is declared, and where nothing is, what the server told (`found`).

    Prefix caching that is not declared counts as on: it is the default of the three engines (vLLM since 0.28).

    Args:
        exposed: Names of the metrics that the server serves.
        compared: What is declared beside what runs; None: nothing was read back yet.
    """
    serve, traits = job.profile.serve, job.engine.traits
    told = found.slots if found is not None else None
    declared = serve.max_num_seqs or job.profile.slots
    length = found.max_model_len if found is not None else None
    is_open = job.profile.engine in OPEN_ENGINES
    refused = found.refused if found is not None else frozenset[str]()
    return Claims(
        engine=job.engine.name,
        task=job.profile.task.value,
        prefix_caching=serve.prefix_caching if serve.prefix_caching is not None else None if is_open else True,
        tools=_claims_tools(job, is_open=is_open),
        thinking=serve.thinking,
        speculative=is_speculative(job, found) is True,
        max_model_len=serve.max_model_len if serve.max_model_len is not None else length,
        max_output=serve.max_output,
        slots=declared if declared is not None else told,
        slots_verified=told is not None,
        cold_fields={name: value for name, value in traits.cold_fields.items() if name not in refused},
        flush=traits.flush,
        metrics=metric_names(traits.metrics, exposed),
        refused=refused,
        compared=compared,
    )


def is_speculative(job: Job, found: Capabilities | None) -> bool | None:
    """The profile declares drafting, or the server says that it drafts; None: nobody knows."""
    if job.profile.serve.speculative is not None:
        return True
    return found.capacity.is_speculative if found is not None else None


def _claims_tools(job: Job, *, is_open: bool) -> bool | None:
    if job.options.tools is not None:
        return job.options.tools
    return True if job.profile.serve.tool_call_parser is not None else None if is_open else False


def metric_names(names: MetricNames, exposed: Collection[str] = ()) -> dict[str, str]:
    """By our word for each metric that the engine has: the first of its names that is served, else the newest."""
    known = {f.name: getattr(names, f.name) for f in fields(names)}
    return {
        ours: next((name for name in theirs if name in exposed), theirs[0]) for ours, theirs in known.items() if theirs
    }


def load_target(road: Road) -> LoadTarget:
    """Where the load goes, with only those fields that the server was seen to take."""
    assert road.capabilities is not None
    assert road.target is not None
    found, job = road.capabilities, road.job
    traits, claims = job.engine.traits, road.target.claims
    return LoadTarget(
        base_url=road.target.base_url,
        model=road.target.model,
        api_key=job.api_key,
        stream_fields=stream_fields(traits.stream_fields, found),
        length_fields={k: v for k, v in traits.length_fields.items() if found.accepted.get(k, False)},
        slots=road.run.slots,
        slots_source=road.run.slots_source,
        vantage=road.run.vantage,
        is_ungated=road.run.is_ungated,
        cache_unit_tok=max(LEAST_UNIT_TOK, found.capacity.unit_tok or 0),
        hit_unit_tok=hit_unit_tok(road.verdicts),
        shares_cache=traits.shares_cache,
        kv_tok=found.capacity.kv_tok,
        engine=found.engine if job.engine.name in OPEN_ENGINES else job.engine.name,
        metrics={k: v for k, v in claims.metrics.items() if traits.has_live_gauges or k not in IN_FLIGHT},
        is_speculative=is_speculative(job, found),
        accepts_priority=accepts_priority(road.head.command.argv if road.ranks and road.head.command else (), traits),
    )


def stream_fields(wanted: Mapping[str, Json], found: Capabilities) -> dict[str, Json]:
    """What makes each event's tokens countable: token ids where they were seen to come, else a running usage."""
    fields_ = {k: v for k, v in wanted.items() if found.accepted.get(k, False)}
    has_ids = any("token_ids" in k and found.support.get(k) == "works" for k in fields_)
    if not has_ids and found.support.get("continuous_usage_stats") == "works":
        fields_["stream_options"] = {"continuous_usage_stats": True}
    return fields_


def hit_unit_tok(verdicts: Sequence[GateRecord]) -> int | None:
    """The granularity of the cache hits that Gate 0 saw; None: it saw none."""
    seen = next((g.measured.get("unit_tok") for g in verdicts if g.name == "prefix_cache" and g.status == "pass"), None)
    return seen if isinstance(seen, int) else None


def accepts_priority(argv: Sequence[str], traits: Traits) -> bool:
    """The engine was started so that it takes priorities; of one that somebody else started nobody knows."""
    wanted = traits.priority_words
    if not wanted:
        return False
    split = [part for word in argv for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return any(tuple(split[i : i + len(wanted)]) == wanted for i in range(len(split)))


def serving_identity(road: Road) -> dict[str, Json]:
    """What a verdict or a cell depends on: image, words, and what the server said of itself; not the container's id."""
    assert road.capabilities is not None
    return {
        "declared": road.job.digest,
        "image": road.image_digest,
        "argv": declared_argv(road),
        "version": road.capabilities.version,
        "slots": road.run.slots,
        "max_model_len": road.capabilities.max_model_len,
        "differing": differing(road.run.effective),
        "suite": [[i.gate.name, i.is_required, dict(i.params)] for i in road.job.suite.items],
        "vantage": road.run.vantage,
    }


def differing(effective: Mapping[str, Json]) -> list[Json]:
    """The declared settings that run as something else, with what runs; the others follow from the declaration."""
    rows = effective.get("compared")
    found = [r for r in rows if isinstance(r, Mapping)] if isinstance(rows, list | tuple) else []
    return [[r.get("path"), r.get("running")] for r in found if r.get("agreement") not in ("same", "unconfirmed")]


def declared_argv(road: Road) -> list[Json]:
    """The words of each rank as they follow from the profile alone, whatever the host has free at the moment."""
    return [list(rank.declared.argv) for rank in road.ranks if rank.declared is not None]


def base_url(road: Road) -> str:
    """`http://host:port/v1` as it is reached from here; through a tunnel when the profile exposes loopback only."""
    profile = road.job.profile
    if profile.attach is not None:
        from orchestrator.wire.target import base_url_of  # brings httpx, which a deploy needs only after the start

        return base_url_of(profile.attach)
    head = road.head
    assert head.command is not None
    port = reachable_port(profile, head.command)
    if profile.expose == "loopback":
        return f"http://127.0.0.1:{head.box.host.open_port(port)}/v1"
    return f"http://{bracketed(head.box.host.address)}:{port}/v1"


def vantage_of(job: Job) -> str:
    """`local`, `tunnel`, `tailnet` or `lan`: from where the load will run."""
    if job.profile.attach is not None:
        return _vantage_of_address(urlsplit(job.profile.attach).hostname or "")
    host = job.boxes[0].host
    if host.is_local:
        return "local"
    return "tunnel" if job.profile.expose == "loopback" else _vantage_of_address(host.address)


def _vantage_of_address(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "local" if address == "localhost" else "tailnet" if address.endswith(".ts.net") else "lan"
    if found.is_loopback:
        return "local"
    return "tailnet" if found in TAILNET else "lan"


def bracketed(address: str) -> str:
    """An IPv6 address in the brackets that a URL wants."""
    return f"[{address}]" if ":" in address else address
