"""What a start needs to know of each host, and what each rank's server will be: asked, translated, labelled, judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from orchestrator.deploy.launch import server_spec
from orchestrator.deploy.preflight import Preflight, judge
from orchestrator.deploy.runtime import LABEL_DIGEST, Server, ServerSpec
from orchestrator.engines.engine import EngineCommand, Placement
from orchestrator.errors import InputError
from orchestrator.fleet.facts import HostFacts, concerns, differences
from orchestrator.pipeline.claims import declared_argv
from orchestrator.pipeline.hostview import HostView, joined
from orchestrator.pipeline.road import Rank, Road
from orchestrator.values import Json, digest


def server_identity(road: Road) -> str:
    """Identity of the running server: what is declared, the image's digest, the words and the environment's names."""
    return digest(
        {
            "declared": road.job.digest,
            "image": road.image_digest,
            "argv": declared_argv(road),
            "env": sorted(road.job.env),
        }
    )


def warn_of_hosts(road: Road) -> None:
    """What is known to go wrong on such hosts, and what differs between the two that form one engine."""
    for rank in road.ranks:
        for concern in concerns(facts_of(rank)):
            if concern.code == "docker" and road.job.profile.runtime == "process":
                continue
            hint = f" ({concern.hint})" if concern.hint else ""
            road.note(road.said_of(rank, f"{concern.code}: {concern.message}{hint}"), is_warning=True)
    for rank in road.ranks[1:]:
        for line in differences(facts_of(road.head), facts_of(rank)):
            road.note(f"{road.head.name} and {rank.name} differ: {line}", is_warning=True)


def look_at_all(road: Road) -> None:
    """Every host's facts, and beside them what its runtime has to say: both are asked over the same connection."""
    acts: list[Callable[[], object]] = []
    for rank in road.ranks:
        acts += [partial(_look_at, rank, road), partial(_ask_runtime, rank, road)]
    together(acts)


def _look_at(rank: Rank, road: Road) -> None:
    rank.facts = road.tools.quick_facts(rank.box.host)
    rank.rest = _in_background(partial(road.tools.other_facts, rank.box.host))


def _in_background(read: Callable[[], HostFacts]) -> Future[HostFacts]:
    pool = ThreadPoolExecutor(1, thread_name_prefix="facts")
    future = pool.submit(read)
    pool.shutdown(wait=False)
    return future


def complete_facts(road: Road) -> None:
    """The facts that were read while the server started; from here on the record has them all."""
    for rank in road.ranks:
        if rank.rest is not None:
            rank.facts = joined(facts_of(rank), rank.rest.result())
    road.save(hosts=tuple(host_json(rank) for rank in road.ranks))
    warn_of_hosts(road)


def _ask_runtime(rank: Rank, road: Road) -> None:
    """Have the runtime's own facts at hand; `_host_spec` and the judgement ask for them again, at no cost."""
    rank.runtime.facts()
    rank.runtime.find()


def prepare(road: Road, rank: Rank) -> None:
    """The rank's spec from the profile alone; `_translate` makes it the host's own before a start."""
    job, master = road.job, road.ranks[0].box
    rank.placement = Placement(
        rank=rank.index,
        nodes=len(road.ranks),
        address=rank.box.link_address or rank.box.host.address,
        master_address=master.link_address or master.host.address,
    )
    rank.declared = rank.command = job.engine.command(job.profile, rank.placement)
    rank.spec = _host_spec(road, rank, rank.declared)


def translate(road: Road, rank: Rank) -> None:
    """What the profile comes to on this host as it is now (a fraction of what is free, say)."""
    assert rank.placement is not None
    facts = facts_of(rank)
    place = replace(rank.placement, total_bytes=facts.memory_total_bytes, free_bytes=facts.memory_available_bytes)
    rank.command = road.job.engine.command(road.job.profile, place)
    rank.spec = replace(_host_spec(road, rank, rank.command), labels=spec_of(rank).labels)


def _host_spec(road: Road, rank: Rank, command: EngineCommand) -> ServerSpec:
    job = road.job
    own = {name: value for name, value in command.env.items() if isinstance(value, str)}
    env = {**own, **job.env}
    if job.api_key is not None and command.api_key_env is not None:
        env[command.api_key_env] = job.api_key
    wants = job.profile.container.gpus
    has_gpu = rank.runtime.facts().has_gpu
    if wants == "all" and not has_gpu:
        raise InputError(
            f"{rank.name}: the profile asks for `gpus: all`, the host's Docker has no GPU runtime",
            hint="install nvidia-container-toolkit on the host, or set `container.gpus: auto`",
        )
    return server_spec(
        job.profile,
        command,
        rank=rank.index,
        run_id=road.run.id,
        digest=job.digest,
        env=env,
        gpus=has_gpu and wants != "none",
        home=facts_of(rank).home or "/root",
    )


def label(road: Road) -> str:
    """Put the server's identity, as far as it is known now, on each rank's spec."""
    identity = server_identity(road)
    for rank in road.ranks:
        spec = spec_of(rank)
        rank.spec = replace(spec, labels={**spec.labels, LABEL_DIGEST: identity})
    return identity


def judge_rank(road: Road, rank: Rank) -> Preflight:
    spec = spec_of(rank)
    ours = rank.runtime.find()
    same_name = tuple(s for s in rank.runtime.find(name=spec.name) if s.id not in {o.id for o in ours})
    view = HostView.of(facts_of(rank))
    return judge(road.job.profile, command_of(rank), spec, view, (*ours, *same_name), rank.runtime.foreign())


def facts_of(rank: Rank) -> HostFacts:
    assert rank.facts is not None
    return rank.facts


def spec_of(rank: Rank) -> ServerSpec:
    assert rank.spec is not None
    return rank.spec


def command_of(rank: Rank) -> EngineCommand:
    assert rank.command is not None
    return rank.command


def server_of(rank: Rank) -> Server:
    assert rank.server is not None
    return rank.server


def host_json(rank: Rank) -> dict[str, Json]:
    return {"name": rank.name, "address": rank.box.host.address, "rank": rank.index, "before": facts_of(rank).as_json()}


def each_rank(road: Road, act: Callable[[Rank, Road], None]) -> None:
    """Do it on all ranks at the same time."""
    together([partial(act, rank, road) for rank in road.ranks])


def together(acts: Sequence[Callable[[], object]]) -> None:
    """All at the same time; the first error in their order is raised once all have ended."""
    if len(acts) == 1:
        acts[0]()
        return
    with ThreadPoolExecutor(len(acts)) as pool:
        futures = [pool.submit(act) for act in acts]
    for future in futures:
        future.result()
