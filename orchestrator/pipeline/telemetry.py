"""telemetry.jsonl: each host's memory, GPU, power and clocks, and the engine's own gauges, once a second.

Sampled beside the gates and the sweeps in threads of their own. What a host does not tell is null; a sample that did
not come is a gap, never filled in. A sampler never ends a run: what goes wrong with it is one line in the events.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from orchestrator.errors import Gate0Error, StoreError
from orchestrator.pipeline.road import Road
from orchestrator.values import Json, utc_now

PERIOD_S = 1.0
FILE = "telemetry.jsonl"
GAUGES = (
    *("running", "waiting", "kv_usage", "prompt_tok", "prompt_computed_tok", "output_tok"),
    *("cache_queries_tok", "cache_hits_tok", "preemptions"),
    *("spec_drafts", "spec_draft_tok", "spec_accepted_tok", "spec_acceptance_length"),
)

Sample = Callable[[], Mapping[str, Json]]


class Telemetry:
    """Samples while the block runs: `with Telemetry(road): …`."""

    def __init__(self, road: Road, *, period_s: float = PERIOD_S) -> None:
        self._road = road
        self._period_s = period_s
        self._stop = threading.Event()
        samples: list[tuple[str, Sample]] = [(r.name, _of_host(road, r.index)) for r in road.ranks]
        samples.append((road.where, _of_engine(road)))
        self._threads = [threading.Thread(target=self._go, args=s, name="telemetry", daemon=True) for s in samples]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=15.0)

    def _go(self, where: str, sample: Sample) -> None:
        has_gap = False
        while True:
            try:
                found = sample()
                if found:
                    if "engine" not in found:
                        self._road.samples.add(self._road.tools.clock(), where, found)
                    self._road.writer.append_line(FILE, {"at": utc_now(), "where": where, **found})
            except StoreError:
                return  # the disk is full: whoever writes the record next says so
            except Gate0Error as exc:
                if not has_gap:
                    self._road.note(f"{where}: telemetry has a gap: {exc.message}", is_warning=True)
                has_gap = True
            else:
                has_gap = False
            if self._stop.wait(self._period_s):
                return


def _of_host(road: Road, index: int) -> Sample:
    rank = road.ranks[index]
    has_gpu = rank.facts is not None and rank.facts.has_gpu
    return lambda: road.tools.sample(rank.box.host, has_gpu)


def _of_engine(road: Road) -> Sample:
    def sample() -> Mapping[str, Json]:
        if road.target is None:
            return {}
        names, found = road.target.claims.metrics, road.target.metrics()
        if found is None:
            return {}
        told: dict[str, Json] = {ours: found.get(names[ours]) for ours in GAUGES if ours in names}
        return {"engine": told}

    return sample
