"""What a running server tells of itself, collected over HTTP and from its log, and set beside what was declared.

Nothing here judges: the rows go into the record, onto the terminal, and to the gate `effective` through the claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.engines.effective.comparing import compare
from orchestrator.engines.effective.documents import without_secrets
from orchestrator.engines.effective.model import Agreement, Compared, Effective, Reading, Told
from orchestrator.engines.effective.reading import VOICES, read
from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.flags.loading import ENGINES, choose, version_text, versions, wanted_version
from orchestrator.engines.flags.model import Chosen
from orchestrator.pipeline.claims import OPEN_ENGINES
from orchestrator.pipeline.own_list import own_list_of
from orchestrator.pipeline.road import Road
from orchestrator.pipeline.start_log import LOG_LINES, start_log
from orchestrator.values import Json, in_words
from orchestrator.wire.chat import Target

if TYPE_CHECKING:
    from orchestrator.wire.probe import Capabilities

ANY_PATHS = ("/v1/models", "/version", "/props", "/server_info")
"""Asked of a server that nobody knows."""
INFORMATION = ("_info", "_config")
"""How names of metrics end that keep words in their labels."""
SHOWN_CHARS = 200
COUNTED_AS = {Agreement.CHANGED: "changed by the engine", Agreement.UNCONFIRMED: "not confirmable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """What was read and compared. `chosen`: the list of flags it was compared by, None: there is none."""

    effective: Effective
    told: Told = field(default_factory=Told)
    chosen: Chosen | None = None

    @property
    def rows(self) -> tuple[Mapping[str, Json], ...]:
        """For the claims."""
        return tuple(c.as_json() for c in self.effective.compared)

    @property
    def drafts(self) -> bool:
        """The server says that it drafts, whatever made it do so (a flag of its own, say)."""
        return any(r.name == "speculates" and r.value is True for r in self.effective.readings)

    @property
    def context_tok(self) -> int | None:
        """Tokens of one request as the server runs them; None: it does not tell."""
        rows = (c.running for c in self.effective.compared if c.path == "serve.max_model_len")
        told = (r.value for r in self.effective.readings if r.name == "max_model_len")
        return next((n for n in (*rows, *told) if isinstance(n, int) and not isinstance(n, bool)), None)

    @property
    def counted(self) -> str:
        """`14 same, 2 changed by the engine, 1 not confirmable`; empty for nothing."""
        counts = {a: sum(c.agreement is a for c in self.effective.compared) for a in Agreement}
        return ", ".join(f"{n} {COUNTED_AS.get(a, a.value)}" for a, n in counts.items() if n)

    def as_json(self) -> dict[str, Json]:
        """For the record."""
        told, by = self.told, self.chosen
        listed: Json = {"engine": by.catalogue.engine, "version": by.catalogue.version, "note": by.note} if by else None
        at_hand: Json = {"log_lines": len(told.log), "documents": sorted(told.documents), "metrics": len(told.metrics)}
        return {**self.effective.as_json(), "catalogue": listed, "told": at_hand}


def read_back(road: Road, found: Capabilities) -> ReadBack:
    """Ask the server, read its log where there is one, and compare."""
    assert road.target is not None
    job = road.job
    engine = found.engine if job.engine.name in OPEN_ENGINES else job.engine.name
    told = collect(road.target, engine, start_log(road))
    chosen = _list_for(road, engine, found.version)
    readings = read(engine, told)
    listed = chosen.catalogue if chosen else None
    compared = compare(job.profile, _command(road), readings, told, engine=engine, catalogue=listed)
    rows = (*(_as_known(road, row) for row in compared.compared), *_idle_gpu(road, readings))
    return ReadBack(effective=replace(compared, compared=rows), told=told, chosen=chosen)


def _list_for(road: Road, engine: str, told: str | None) -> Chosen | None:
    """The own list of what runs where it was read, else a shipped one.

    Which one tells the server, if there is a list of just its version. Else it is a build of its own, and what the
    profile states (`engine_version`, the image's tag) stands before the list nearest to what it says.
    """
    if engine not in ENGINES:
        return None
    if (own := own_list_of(road, engine)) is not None:
        return own
    version = None if told is None else version_text(told)
    return choose(engine, told if version in versions(engine) else wanted_version(road.job.profile) or told)


def collect(target: Target, engine: str, log: Sequence[str] = ()) -> Told:
    """All that the server says but credentials, as far as it can be had. Paths that it does not have are absent."""
    paths = VOICES[engine].documents if engine in VOICES else ANY_PATHS
    documents = {p: without_secrets(found) for p in paths if (found := target.get_json(p)) is not None}
    metrics = target.metrics() or {}
    labels = {name: target.metric_labels(name) for name in metrics if name.endswith(INFORMATION)}
    return Told(log=tuple(log[:LOG_LINES]), documents=documents, labels=labels, metrics=metrics)


def context_words(declared: int | None, running: int | None) -> list[str]:
    """How long a request may be, in words: what runs, and what was declared where that is another length."""
    if running is None:
        return [] if declared is None else [f"{declared} tokens of context (declared)"]
    if declared is None or declared == running:
        return [f"{running} tokens of context"]
    if running < declared:
        return [f"{running} of the declared {declared} tokens of context"]
    return [f"{running} tokens of context, {declared} declared"]


def note_differences(road: Road, found: ReadBack) -> None:
    """Say at once what does not agree, and what the engine changed."""
    for row in found.effective.compared:
        if row.is_failing or row.agreement is Agreement.CHANGED:
            road.note(_said(row), is_warning=row.is_failing)


def _said(row: Compared) -> str:
    runs = "is not there" if row.running is None else f"the server runs {in_words(row.running)}"
    why = " ".join((row.quote or row.why or row.source or "").split())
    shown = why if len(why) <= SHOWN_CHARS else f"{why[: SHOWN_CHARS - 1]}…"
    return f"{row.path}: declared {in_words(row.declared)}, {runs}" + (f" ({shown})" if shown else "")


def _command(road: Road) -> EngineCommand:
    """The words that it was started with; of an attached server none are known."""
    head = next(iter(road.ranks), None)
    if head is not None and head.command is not None:
        return head.command
    url = urlsplit(road.job.profile.attach or "")
    profile = road.job.profile
    return EngineCommand(argv=(), port=url.port or 0, slots=profile.slots or profile.serve.max_num_seqs)


def _as_known(road: Road, row: Compared) -> Compared:
    """A share of the memory that was free when somebody else's start asked is not what would be asked now."""
    is_reused = any(rank.is_reused for rank in road.ranks)
    if not is_reused or row.path != "serve.memory_gib" or not row.is_failing:
        return row
    why = "the server was started before, with a share of what was free then"
    return replace(row, agreement=Agreement.UNCONFIRMED, why=why, is_weaker=False)


def _idle_gpu(road: Road, readings: Sequence[Reading]) -> Iterator[Compared]:
    """The server was given the host's GPUs, and says that no layer lies on one."""
    rank = next(iter(road.ranks), None)
    is_given = rank is not None and rank.spec is not None and rank.spec.gpus
    found = next((r for r in readings if _is_off_gpu(r)), None)
    if is_given and found is not None:
        yield Compared(
            path="container.gpus",
            declared="layers on the GPU",
            agreement=Agreement.CONTRADICTED,
            running="all on the CPU",
            source=found.source,
            quote=found.quote,
            why="the container was given the GPUs, and its engine uses none",
            is_weaker=True,
        )


def _is_off_gpu(reading: Reading) -> bool:
    if reading.name == "layers_offloaded":
        return str(reading.value).startswith("0/")
    return reading.name == "is_on_gpu" and reading.value is False
