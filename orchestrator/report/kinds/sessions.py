"""Conversations: what each turn costs as the history grows."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.figures.sessions import SessionFigures, TurnFigures
from orchestrator.report.columns import Column, Family, Line
from orchestrator.report.kinds.common import GOOD, OUTPUT, PER_USER, PROMPT, RATE, SLO, USERS, order
from orchestrator.report.text import DASH, listed, number, rate, seconds, share


def _of(write: Callable[[SessionFigures], str]) -> Callable[[Line], str]:
    return lambda line: DASH if line.figures.sessions is None else write(line.figures.sessions)


def _turn(place: int, write: Callable[[TurnFigures], str]) -> Callable[[Line], str]:
    """Of the first (0) or last (-1) turn."""

    def words(found: SessionFigures) -> str:
        return write(found.turns[place]) if found.turns else DASH

    return _of(words)


def _by_turn(write: Callable[[TurnFigures], str]) -> Callable[[Line], str]:
    return _of(lambda found: listed([write(t) for t in found.turns]))


BY_TURN = (
    Column(
        head="TTFT by turn p50 (s)",
        short="TTFT by turn\np50 s",
        words=_by_turn(lambda t: seconds(t.ttft_ms.p50)),
        group="by turn",
        is_optional=True,
    ),
    Column(
        head="Cached by turn",
        short="cached\nby turn",
        words=_by_turn(lambda t: share(t.cached_share)),
        group="by turn cached",
        is_optional=True,
    ),
    Column(
        head="Prompt by turn (tok)",
        short="prompt tok\nby turn",
        words=_by_turn(lambda t: number(t.prompt_tok, 0)),
        group="by turn prompt",
        is_optional=True,
    ),
)


SESSIONS = Family(
    name="sessions",
    axes=(PROMPT, OUTPUT),
    lead=(USERS,),
    columns=(
        Column(
            head="Sessions whole",
            short="sessions\nwhole",
            words=_of(lambda f: f"{f.whole}/{f.sessions}"),
            group="whole",
        ),
        Column(
            head="TTFT first turn p50 (s)",
            short="TTFT s\nfirst turn",
            words=_turn(0, lambda t: seconds(t.ttft_ms.p50)),
            group="turns",
        ),
        Column(
            head="TTFT last turn p50 (s)",
            short="TTFT s\nlast turn",
            words=_turn(-1, lambda t: seconds(t.ttft_ms.p50)),
            group="turns",
        ),
        *BY_TURN,
        Column(
            head="Session p50 (s)",
            short="session\np50 s",
            words=_of(lambda f: rate(f.duration_s.p50)),
            group="duration",
        ),
        Column(
            head="Session p95 (s)",
            short="session\np95 s",
            words=_of(lambda f: rate(f.duration_s.p95)),
            group="duration",
        ),
        RATE,
        PER_USER,
        SLO,
        GOOD,
    ),
    caption=(
        "TTFT from the first byte of each turn; a session's time is that of its turns, the user's thinking is not in "
        "it. Cached: share of the prompt, history included, that came from the prefix cache."
    ),
    order=order,
)
