"""An advisory is a question; a gate that passed on the same image with the same settings is its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.engines.engine import Advisory


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """What a record says that can answer: which gates passed, on what.

    `gates`: by name `pass`, `unstable`, `fail`, `error` or `skip`.
    """

    id: str
    engine: str
    model: str
    profile_digest: str
    image_digest: str | None
    gates: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What is to be served now. `image_digest` None: no host was asked yet, the image's name has to do."""

    engine: str
    model: str
    profile_digest: str
    image_digest: str | None = None


def answered(advisories: Sequence[Advisory], served: Served, past_runs: Sequence[PastRun]) -> tuple[Advisory, ...]:
    """The advisories, those that a past run answers with its words in `answer`.

    The newest run that judged a gate decides: one that failed since takes an older answer back, and is named instead.

    Args:
        past_runs: Oldest first; those of another engine, model, profile or image are left aside.
    """
    same = [run for run in past_runs if _is_same(run, served)]
    newest = same[-1].image_digest if same else None
    # Without a host the tag may name any of the images that ran under it: the last one is what is spoken of.
    ours = [run for run in same if run.image_digest == newest]
    return tuple(_answer(advisory, ours, is_assumed=served.image_digest is None) for advisory in advisories)


def _is_same(run: PastRun, served: Served) -> bool:
    is_declared = (run.engine, run.model, run.profile_digest) == (served.engine, served.model, served.profile_digest)
    if not is_declared or run.image_digest is None:
        return False
    return served.image_digest is None or run.image_digest == served.image_digest


def _answer(advisory: Advisory, runs: Sequence[PastRun], *, is_assumed: bool) -> Advisory:
    wanted = advisory.gates
    judged = [run for run in runs if any(_verdict(run, gate) is not None for gate in wanted)]
    if not judged or not wanted:
        return advisory
    last = judged[-1]
    failed = [gate for gate in wanted if _verdict(last, gate) == "fail"]
    if failed:
        return replace(advisory, seen=f"seen in run {last.id}: {_listed(failed)} failed on {last.image_digest}")
    if any(_verdict(last, gate) != "pass" for gate in wanted):
        return advisory
    unless = ", if the image still is that one" if is_assumed else ""
    words = f"answered by run {last.id}: {_listed(wanted)} passed on {last.image_digest}{unless}"
    return replace(advisory, answer=words)


def _verdict(run: PastRun, gate: str) -> str | None:
    """PASS, UNSTABLE or FAIL; None where the gate did not run, was skipped or could not tell."""
    status = run.gates.get(gate)
    return status if status in {"pass", "unstable", "fail"} else None


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
