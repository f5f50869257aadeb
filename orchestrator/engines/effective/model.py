"""What runs, as its engine tells it, and how that compares with what was declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that a running server was seen to say; the raw material, as far as it could be had.

    Attributes:
        log: Lines of its start-up log, oldest first; (): no log at hand (an attached server).
        documents: JSON by the path that gave it (`/server_info`, `/props`, `/v1/models`, `/version`).
        labels: Label sets of information metrics by metric name (`vllm:cache_config_info`).
        metrics: Samples by metric name, labels summed.
    """

    log: tuple[str, ...] = ()
    documents: Mapping[str, Json] = field(default_factory=dict)
    labels: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


class Telling(StrEnum):
    """What stands behind a reading, the weakest first.

    ECHOED: the engine repeats what it was given. RESOLVED: its configuration, after its own rules. SEEN: what it
    built or does (a pool's size, slots that answer, tokens that were accepted).
    """

    ECHOED = "echoed"
    RESOLVED = "resolved"
    SEEN = "seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One thing that the server tells of itself.

    Attributes:
        name: Our word where there is one (`max_model_len`, `kv_cache_dtype`), else the engine's own flag or key with
            underscores (`mamba_cache_mode`).
        value: As plain JSON.
        source: Where it stands (`/props total_slots`, `log`, `metrics vllm:cache_config_info block_size`).
        quote: The log line itself; None when it is no log.
    """

    name: str
    value: Json
    source: str
    quote: str | None = None
    telling: Telling = Telling.RESOLVED


class NoticeKind(StrEnum):
    """IGNORED: it was given and does nothing. CHANGED: another value runs. DEPRECATED: it works still."""

    IGNORED = "ignored"
    CHANGED = "changed"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A log line in which the engine itself says that it does something else than it was told.

    Attributes:
        about: A reading's name (`prefix_caching`), a variable (`env.VLLM_USE_V1`).
        value: What runs instead; None when the line does not tell.
    """

    kind: NoticeKind
    about: str
    quote: str
    value: Json = None


class Agreement(StrEnum):
    """How a declared setting and the running one compare.

    SAME: read back with this value. CHANGED: the engine runs another value and says so itself (its log line is the
    quote). UNCONFIRMED: the engine has no place that tells. IGNORED: it was declared and is not there. CONTRADICTED:
    another value runs and nothing explains it. The last two fail the gate.
    """

    SAME = "same"
    CHANGED = "changed"
    UNCONFIRMED = "unconfirmed"
    IGNORED = "ignored"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One declared setting beside what runs.

    Attributes:
        path: Where it is declared: `serve.max_model_len`, `flags.mamba-cache-mode`, `args[0] -ngl`, `added.--metrics`.
        declared: Its value as declared; of a `memory_gib` what was put on the command line.
        running: None when nothing tells.
        why: In words, where it needs them ("the engine lowered it to fit memory").
        is_weaker: What runs is less than what was promised: a shorter context, fewer requests at once, no cache, no
            speculation, a coarser KV cache.
    """

    path: str
    declared: Json
    agreement: Agreement
    running: Json = None
    source: str | None = None
    quote: str | None = None
    why: str | None = None
    is_weaker: bool = False

    @property
    def is_failing(self) -> bool:
        """True when the running server is not the declared one: ignored, contradicted, or changed for the worse.

        A change that the engine announces and that takes nothing away (a batch that it raised) does not fail.
        """
        is_wrong = self.agreement in (Agreement.IGNORED, Agreement.CONTRADICTED)
        return is_wrong or (self.agreement is Agreement.CHANGED and self.is_weaker)

    def as_json(self) -> dict[str, Json]:
        """For the record."""
        return {
            "path": self.path,
            "declared": self.declared,
            "agreement": self.agreement.value,
            "running": self.running,
            "source": self.source,
            "quote": self.quote,
            "why": self.why,
            "is_weaker": self.is_weaker,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """All that was read, what the engine said of it, and every declared setting compared."""

    readings: tuple[Reading, ...] = ()
    compared: tuple[Compared, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def failing(self) -> tuple[Compared, ...]:
        """The settings that speak against the server."""
        return tuple(c for c in self.compared if c.is_failing)

    def as_json(self) -> dict[str, Json]:
        """For the record."""
        return {
            "readings": [
                {
                    "name": r.name,
                    "value": r.value,
                    "source": r.source,
                    "quote": r.quote,
                    "telling": r.telling.value,
                }
                for r in self.readings
            ],
            "compared": [c.as_json() for c in self.compared],
            "notices": [
                {"kind": n.kind.value, "about": n.about, "value": n.value, "quote": n.quote} for n in self.notices
            ],
        }
