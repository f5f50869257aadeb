"""Conversations: what a later turn costs, and how long a session lasts without its user's thinking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import e2e_ms, ttft_ms
from orchestrator.figures.scope import good_of, values_of
from orchestrator.figures.stats import Percentiles, percentile, percentiles
from orchestrator.records.record import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures(Plain):
    """All sessions' turn number `turn` (0-based).

    Attributes:
        failed: Of `requests`; they are in no other figure.
        cached_share: Cached / prompt tokens of the turn; None when the server did not tell one of them.
        prompt_tok: Median: how far the history has grown.
    """

    turn: int
    requests: int
    failed: int
    ttft_ms: Percentiles
    cached_share: float | None
    prompt_tok: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFigures(Plain):
    """Attributes:
    sessions, whole: How many began, and how many had all their turns answered.
    duration_s: Sum of a whole session's turns, first byte sent to end of response: think time is not in it.
    """

    sessions: int
    whole: int
    duration_s: Percentiles
    turns: tuple[TurnFigures, ...]


def session_figures(main: Sequence[RequestRecord]) -> SessionFigures | None:
    """Of the requests of phase `main` that belong to a track; None when none does."""
    tracks: dict[tuple[int, str, int], list[RequestRecord]] = {}
    for r in main:
        if r.track is not None:
            tracks.setdefault((r.repeat, r.lane, r.track), []).append(r)
    if not tracks:
        return None
    durations = [d for part in tracks.values() if (d := _duration_s(part)) is not None]
    by_turn: dict[int, list[RequestRecord]] = {}
    for part in tracks.values():
        for r in part:
            by_turn.setdefault(r.turn, []).append(r)
    return SessionFigures(
        sessions=len(tracks),
        whole=len(durations),
        duration_s=percentiles(durations),
        turns=tuple(_turn(turn, part) for turn, part in sorted(by_turn.items())),
    )


def cached_share(good: Sequence[RequestRecord]) -> float | None:
    """Cached / prompt tokens over all; None as soon as the server did not tell one of them."""
    pairs = [(r.cached_tok, r.prompt_tok) for r in good if r.cached_tok is not None and r.prompt_tok]
    prompt = sum(p for _, p in pairs if p is not None)
    return sum(c for c, _ in pairs if c is not None) / prompt if prompt and len(pairs) == len(good) else None


def _turn(turn: int, part: Sequence[RequestRecord]) -> TurnFigures:
    good = good_of(part)
    return TurnFigures(
        turn=turn,
        requests=len(part),
        failed=len(part) - len(good),
        ttft_ms=percentiles(values_of(good, ttft_ms)),
        cached_share=cached_share(good),
        prompt_tok=percentile([r.prompt_tok for r in good if r.prompt_tok is not None], 0.5),
    )


def _duration_s(part: Sequence[RequestRecord]) -> float | None:
    spans = values_of(good_of(part), e2e_ms)
    return sum(spans) / 1000 if len(spans) == len(part) else None
