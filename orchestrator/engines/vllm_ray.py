"""vLLM over Ray: a cluster of the ranks' containers, with the server on rank 0.

vLLM's own executor joins the hosts by flags on each rank. Ray is started beside it instead: rank 0 opens the cluster
and then serves, the other rank joins and waits for work; vLLM waits until the cluster is large enough. The image must
hold Ray (vLLM 0.20 and later install it only with an extra).
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engines.engine import EngineCommand, Placement
from orchestrator.engines.words import Parser, declared
from orchestrator.profile.model import Profile

EXECUTOR = "distributed-executor-backend"
PORT = 6379
JOIN_TRIES = 300
"""Every two seconds: rank 0's image may still be starting."""
# VLLM_HOST_IP is each rank's own address; "$@" is the server with all its words.
OPEN = f'ray start --head --disable-usage-stats --node-ip-address="$VLLM_HOST_IP" --port={PORT} && exec "$@"'
JOIN = (
    f"for try in $(seq {JOIN_TRIES}); do "
    'ray health-check --address="$1" >/dev/null 2>&1 && '
    'exec ray start --block --disable-usage-stats --node-ip-address="$VLLM_HOST_IP" --address="$1"; '
    'sleep 2; done; echo "no Ray cluster answers at $1" >&2; exit 1'
)
# Its monitor takes the GPU's part of a unified memory for a leak.
ENV = {"RAY_memory_monitor_refresh_ms": "0"}
SERVE = ("vllm", "serve")


def is_over_ray(parser: Parser, profile: Profile) -> bool:
    """The profile spans hosts and says that Ray joins them."""
    executor = declared(parser, profile).get(EXECUTOR)
    return profile.nodes > 1 and executor is not None and executor.value == "ray"


def over_ray(profile: Profile, command: EngineCommand, place: Placement, *, has_program: bool) -> EngineCommand:
    """The same server as a rank of a Ray cluster.

    Args:
        has_program: The words begin with the program itself.
    """
    env = {**command.env, **{name: value for name, value in ENV.items() if name not in profile.env}}
    if place.rank:
        entrypoint = ("bash", "-c", JOIN, "ray", f"{place.master_address}:{PORT}")
        return replace(command, entrypoint=entrypoint, argv=(), origins=(), added=(), env=env)
    program = () if has_program else profile.container.entrypoint or SERVE
    note = f"nodes: {profile.nodes} over Ray: rank 0 opens a cluster on port {PORT}, the image must hold Ray"
    return replace(command, entrypoint=("bash", "-c", OPEN, "ray", *program), env=env, notes=(*command.notes, note))
