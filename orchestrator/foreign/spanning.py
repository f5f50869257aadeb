"""Over how many hosts one server stretches, from what its form and its command say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.foreign.containers import LAUNCHERS
from orchestrator.foreign.items import Item
from orchestrator.foreign.model import Fate, Launch, Note

MOST = 2
"""Hosts that gate0 forms one server of."""

_RENDEZVOUS = {
    "vllm": ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless"),
    "sglang": ("--nnodes", "--node-rank", "--dist-init-addr"),
    "llamacpp": (),
}
_SIZES = {
    "vllm": ("--tensor-parallel-size", "--pipeline-parallel-size"),
    "sglang": ("--tp-size", "--pp-size"),
    "llamacpp": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Hosts, the flags that only introduce them to each other, and what somebody must know."""

    nodes: int
    rendezvous: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()


def span_of(launch: Launch, engine: str, items: Sequence[Item]) -> Span:
    """One host or two. A launcher's recipe counts a GPU a host, as on a DGX Spark; elsewhere the command says it."""
    rendezvous = tuple(item for item in items if item.name in _RENDEZVOUS[engine])
    gpus = 1
    for name in _SIZES[engine]:
        gpus *= _number(items, name) or 1
    stated = _number(items, "--nnodes") if rendezvous else None
    wanted = stated or (launch.nodes if launch.form not in LAUNCHERS else None) or 1
    if launch.form in LAUNCHERS and launch.nodes != 1:
        wanted = max(wanted, gpus)
    if engine == "llamacpp" and (launch.nodes or 1) > 1:
        why = f"{launch.nodes} hosts: llama-server has no ranks; run rpc-server on the others and use flags: {{rpc: …}}"
        return Span(nodes=1, notes=(_note("nodes", why),))
    if wanted > MOST:
        why = f"needs {wanted} hosts: gate0 forms one server over at most {MOST}, so this profile cannot start as it is"
        return Span(nodes=1, notes=(_note(f"{wanted} hosts", why),))
    if wanted == MOST and gpus < MOST:
        why = "two hosts, but tensor and pipeline parallel size come to one GPU: one host is declared"
        return Span(nodes=1, notes=(_note("nodes", why),))
    return Span(nodes=wanted, rendezvous=rendezvous, notes=tuple(_remarks(launch, items, wanted, gpus)))


def _remarks(launch: Launch, items: Sequence[Item], nodes: int, gpus: int) -> list[Note]:
    found = []
    if nodes == 1 and gpus > 1:
        found.append(_note(f"{gpus} GPUs", "one host is declared: a DGX Spark has one GPU, use `nodes: 2` over two"))
    rank = _number(items, "--node-rank")
    if nodes == MOST and rank:
        found.append(_note(f"--node-rank {rank}", "the line of the second host: gate0 starts both from one profile"))
    if launch.form in LAUNCHERS and launch.nodes and launch.nodes > 1 and gpus == 1:
        why = f"the recipe wants {launch.nodes} hosts and its command uses one GPU: one host is declared"
        found.append(_note("nodes", why))
    return found


def _number(items: Sequence[Item], name: str) -> int | None:
    values = [item.values[0] for item in items if item.name == name and len(item.values) == 1]
    return int(values[-1]) if values and values[-1].isdecimal() and len(values[-1]) < 6 else None


def _note(what: str, why: str) -> Note:
    return Note(fate=Fate.PERSON, what=what, where="nodes", why=why)
