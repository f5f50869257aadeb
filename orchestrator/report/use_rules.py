"""What people use such a machine for, as rules: which cell decides, by which limits, and which figure ranks.

Where the limits come from:

- First token. 1 s keeps the flow of thought, 10 s the attention (J. Nielsen, Usability Engineering, 1993, chapter 5);
  3 s and 5 s are the presets `office` and `agent` (`records.slo_presets`). 30 s: a report that put 25k of context on a
  Spark called 20 s workable for analyses and 35 s not.
- Speed. Silent reading takes 238 words a minute (M. Brysbaert, J. Mem. Lang. 109, 2019), about 5 tokens/s; 7 leave
  room, and the same report saw speed break down below them. 10 and 20 tokens/s are the presets `voice` and `agent`.
- Ten agents that write 4,096 tokens each at 11.75 tok/s were called good: 10 tok/s make seven minutes of it.
- A swarm. Its agents read nothing as it comes: a step of 400 tokens within about two minutes. Below 95 % cached each
  agent reads part of the shared prefix again, which queued up to a minute before the first token.
- Answered. The preset `batch`: 99 % within ten minutes, none lost; else the 95 % of the other presets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from orchestrator.records.record import CellRecord
from orchestrator.records.slo_presets import PRESETS

Range = tuple[float, float]
ANY: Range = (0, math.inf)
CHAT_S = PRESETS["chat"].ttft_s or 1.0
OFFICE_S = PRESETS["office"].ttft_s or 3.0
AGENT_S = PRESETS["agent"].ttft_s or 5.0
AGENT_TOK_PER_S = 1000 / (PRESETS["agent"].tpot_ms or 50.0)
VOICE_TOK_PER_S = 1000 / (PRESETS["voice"].tpot_ms or 100.0)
BATCH_S = PRESETS["batch"].e2e_s or 600.0
ATTENTION_S, ANALYSIS_S = 10.0, 30.0
READING_TOK_PER_S, READING_ROOM_TOK_PER_S = 5.0, 7.0
ANSWERS = 200
"""Of the batch whose wall time is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A figure (a key of `use_figures.USE_FIGURES`) up to `yes` is a yes, up to `careful` a careful, beyond it a no.

    Attributes:
        is_required: Not known: careful at best. Else a figure that is not known does not count.
    """

    figure: str
    yes: float
    careful: float
    is_required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which cells decide a use, and how.

    Attributes:
        load: In words.
        kinds, variants: The first is preferred; no variants: any.
        users: At once; `target` is preferred. context: Prefix, depth and prompt together, tokens.
        rate: Of an open loop, requests/s; None: no matter.
        is_any_level: A configuration is judged at its best level: users, and the number of levels, are free.
        ranks: Figures in order; `shows`: those that are told beside them.
        caveat: Why it can be careful at best; empty: it can be a yes.
    """

    load: str
    kinds: tuple[str, ...]
    limits: tuple[Limit, ...]
    ranks: tuple[str, ...]
    shows: tuple[str, ...]
    variants: tuple[str, ...] = ()
    users: Range = ANY
    target: int | None = None
    context: Range = ANY
    output: Range = ANY
    rate: Range | None = None
    is_any_level: bool = False
    caveat: str = ""

    def matches(self, cell: CellRecord) -> bool:
        """A size that another's report does not tell is 0: within a range that begins there."""
        return (
            cell.kind in self.kinds
            and (not self.variants or cell.variant in self.variants)
            and (self.rate is not None or _in(cell.concurrency, self.users))
            and _in(context_tok(cell), self.context)
            and _in(cell.output_tok, self.output)
            and (self.rate is None or (cell.rate_rps is not None and _in(cell.rate_rps, self.rate)))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """
    Attributes:
        rules: In order: the first that has a cell decides.
        workload: The shipped one that measures it.
        answers: Of a batch: for how many the wall time is told.
    """

    key: str
    title: str
    rules: tuple[Rule, ...] = field(default_factory=tuple)
    workload: str
    answers: int = 0


def context_tok(cell: CellRecord) -> int:
    return cell.prefix_tok + cell.depth_tok + cell.prompt_tok


def _in(value: float, wanted: Range) -> bool:
    return wanted[0] <= value <= wanted[1]
