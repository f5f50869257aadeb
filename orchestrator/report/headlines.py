"""The figures that two runs are compared by: what they are called, how they are written, and which way is good."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from orchestrator.errors import InputError
from orchestrator.figures.server import number_of
from orchestrator.records.record import CellRecord
from orchestrator.report.text import number, rate, seconds, share

Clock = Callable[[CellRecord], float | None]


class Good(StrEnum):
    """Which way a figure is better."""

    MORE = "more"
    LESS = "less"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One figure.

    Attributes:
        key: As in `figures.samples`, with its unit where it has one of its own.
        title: In tables, with the unit that `shown` writes. unit: of the plain values.
        is_share: Of one: compared in points, and a threshold in percent is one in points.
        clock: What the client's own clock can tell apart, in `unit`; None: unknown, or no figure of time.
        is_moot_at_zero: Nothing to be said where both sides have none of it.
    """

    key: str
    title: str
    unit: str
    good: Good
    shown: Callable[[float | None], str]
    is_share: bool = False
    clock: Clock = lambda cell: None
    is_moot_at_zero: bool = False
    kinds: frozenset[str] = frozenset()

    def is_of(self, kind: str) -> bool:
        """Loads of that kind have it; without a list all have."""
        return not self.kinds or kind in self.kinds


def ttft_clock_ms(cell: CellRecord) -> float | None:
    """By `gate0 calibrate`: the larger of mean and p95 of the error of a first token."""
    return _bar_ms(cell, "ttft_error_ms")


def tpot_clock_ms(cell: CellRecord) -> float | None:
    """The error from first to last token, spread over the tokens between."""
    bar = _bar_ms(cell, "decode_error_ms")
    return None if bar is None or cell.output_tok < 2 else bar / (cell.output_tok - 1)


def started_clock_s(cell: CellRecord) -> float | None:
    bar = ttft_clock_ms(cell)
    return None if bar is None else bar / 1000


HEADLINES = (
    Headline(key="output_tok_per_s", title="output (tok/s)", unit="tok/s", good=Good.MORE, shown=rate),
    Headline(
        key="prompt_tok_per_s",
        title="prompts taken in (tok/s)",
        unit="tok/s",
        good=Good.MORE,
        shown=rate,
        kinds=frozenset({"ingest"}),
    ),
    Headline(key="per_user_tok_per_s", title="per user (tok/s)", unit="tok/s", good=Good.MORE, shown=rate),
    Headline(key="ttft_p50", title="TTFT p50 (s)", unit="ms", good=Good.LESS, shown=seconds, clock=ttft_clock_ms),
    Headline(key="ttft_p95", title="TTFT p95 (s)", unit="ms", good=Good.LESS, shown=seconds, clock=ttft_clock_ms),
    Headline(key="tpot_p50", title="TPOT p50 (ms)", unit="ms", good=Good.LESS, shown=rate, clock=tpot_clock_ms),
    Headline(
        key="cached_share",
        title="cached",
        unit="",
        good=Good.MORE,
        shown=lambda value: share(value, 1),
        is_share=True,
        is_moot_at_zero=True,
    ),
    Headline(
        key="reread_tok",
        title="read again (tok)",
        unit="tok",
        good=Good.LESS,
        shown=lambda value: number(value, 0),
        is_moot_at_zero=True,
    ),
    Headline(key="all_started_s", title="all started (s)", unit="s", good=Good.LESS, shown=rate, clock=started_clock_s),
    Headline(key="prefill_tok_per_s", title="prefill (tok/s)", unit="tok/s", good=Good.MORE, shown=rate),
    Headline(
        key="attainment",
        title="service level kept",
        unit="",
        good=Good.MORE,
        shown=lambda value: share(value, 1),
        is_share=True,
    ),
)


def find_headlines(names: Sequence[str]) -> tuple[Headline, ...]:
    """By key, or by its beginning: `ttft` is p50 and p95. Without a name all.

    Raises:
        InputError: No headline figure begins so.
    """
    wanted: dict[str, Headline] = {}
    for name in names:
        asked = name.lower().replace("-", "_")
        found = [h for h in HEADLINES if h.key == asked or h.key.startswith(f"{asked}_")]
        if not found:
            keys = [h.key for h in HEADLINES]
            near = get_close_matches(asked, [*keys, *(k.split("_")[0] for k in keys)], n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"one of {', '.join(keys)}"
            raise InputError(f"no headline figure named {name!r}", hint=hint)
        wanted |= {h.key: h for h in found}
    return tuple(h for h in HEADLINES if not names or h.key in wanted)


def _bar_ms(cell: CellRecord, name: str) -> float | None:
    told = cell.client_error.get(name)
    if not isinstance(told, Mapping):
        return None
    known = [abs(v) for key in ("mean", "p95") if (v := number_of(told, key)) is not None]
    return max(known, default=None)
