"""What the profile and the server together say: claims for the gates, the load's target, the serving's identity."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.deploy.launch import reachable_port
from orchestrator.engines.engine import MetricNames
from orchestrator.sweep.spec import LoadTarget
from orchestrator.values import Json
from orchestrator.wire.chat import Claims

if TYPE_CHECKING:
    from orchestrator.pipeline.road import Job, Road
    from orchestrator.wire.probe import Capabilities

TAILNET = ipaddress.ip_network("100.64.0.0/10")
"""The carrier-grade range (RFC 6598) that tailnets take their addresses from."""


def claims_of(job: Job, found: Capabilities | None) -> Claims:
    """What the gates hold the server to: what is declared, and where nothing is, what the server told (`found`).

    Prefix caching that is not declared counts as on: it is the default of the three engines (vLLM since 0.28).
    """
    serve, traits = job.profile.serve, job.engine.traits
    told = found.slots if found is not None else None
    declared = serve.max_num_seqs or job.profile.slots
    length = found.max_model_len if found is not None else None
    is_open = job.profile.engine in ("generic", "endpoint")
    return Claims(
        engine=job.engine.name,
        task=job.profile.task.value,
        prefix_caching=serve.prefix_caching if serve.prefix_caching is not None else None if is_open else True,
        tools=_claims_tools(job, is_open=is_open),
        thinking=serve.thinking,
        speculative=serve.speculative is not None,
        max_model_len=serve.max_model_len if serve.max_model_len is not None else length,
        max_output=serve.max_output,
        slots=declared if declared is not None else told,
        slots_verified=told is not None,
        cold_fields=traits.cold_fields,
        flush=traits.flush,
        metrics=metric_names(traits.metrics),
    )


def _claims_tools(job: Job, *, is_open: bool) -> bool | None:
    if job.options.tools is not None:
        return job.options.tools
    return True if job.profile.serve.tool_call_parser is not None else None if is_open else False


def metric_names(names: MetricNames) -> dict[str, str]:
    """The engine's metric names that exist, by our word for each."""
    pairs = {
        "running": names.running,
        "waiting": names.waiting,
        "prompt_tok": names.prompt_tok,
        "output_tok": names.output_tok,
        "cache_queries_tok": names.cache_queries_tok,
        "cache_hits_tok": names.cache_hits_tok,
        "kv_usage": names.kv_usage,
    }
    return {ours: theirs for ours, theirs in pairs.items() if theirs is not None}


def load_target(road: Road) -> LoadTarget:
    """Where the load goes, with only those fields that the server was seen to take."""
    assert road.capabilities is not None
    assert road.target is not None
    accepted = road.capabilities.accepted
    traits = road.job.engine.traits
    return LoadTarget(
        base_url=road.target.base_url,
        model=road.target.model,
        api_key=road.job.api_key,
        stream_fields={k: v for k, v in traits.stream_fields.items() if accepted.get(k, False)},
        length_fields={k: v for k, v in traits.length_fields.items() if accepted.get(k, False)},
        slots=road.run.slots,
        slots_source=road.run.slots_source,
        vantage=road.run.vantage,
        is_ungated=road.run.is_ungated,
    )


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
        "suite": [[i.gate.name, i.is_required, dict(i.params)] for i in road.job.suite.items],
        "vantage": road.run.vantage,
    }


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
