"""A change in words: what was changed, in short and by kind, and what it did at the cell that tells most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.figures.scope import OPEN_KINDS
from orchestrator.records.record import CellRecord, RunRecord
from orchestrator.report.compare import CellChange
from orchestrator.report.compare_words import change_words, interval_words, told
from orchestrator.report.differences import Difference, Group, differences
from orchestrator.report.figure_change import FigureChange, Verdict
from orchestrator.report.lineage import Step
from orchestrator.report.model_facts import find_precision
from orchestrator.report.text import DASH
from orchestrator.report.words import engine_words
from orchestrator.values import Json

ARROW = "→"
TONES = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.NOT_COMPARABLE: "warn"}
SECTIONS = {"serve": "serve", "flags": "flags", "args": "flags", "env": "env"}
"""Of a profile, and what they are called; all else is `other`."""
CONSEQUENCES = {"requests at once": "serve.max_num_seqs", "longest request (tok)": "serve.max_model_len"}
"""What the server said, and the setting that it follows from."""
DIGEST = 19
"""Characters of a digest that are shown: `sha256:` and twelve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """All differences of one kind: image, engine, model, precision, serve, flags, env, other, hosts, host software,
    gates or measuring.
    """

    kind: str
    words: tuple[str, ...]
    is_aside: bool = False


ORDER = (
    *("image", "engine", "model", "precision", "serve", "flags", "env", "other"),
    *("hosts", "host software", "gates", "measuring"),
)


def changed(step: Step) -> tuple[Changed, ...]:
    """In that order; what one record does not tell of image, engine and model is no difference."""
    a, b = (_with_image(row.run) for row in (step.before, step.after))
    found: dict[str, list[str]] = {}
    known = {d.name for d in differences(a, b)}
    settings = []
    for difference in differences(a, b):
        if difference.group is Group.SETTINGS:
            settings.append(difference)
        elif (kind := _kind(difference, known)) is not None:
            found.setdefault(kind, []).append(_words(difference.name, difference.a, difference.b, kind))
    for kind, words in _settings(settings):
        found.setdefault(kind, []).append(words)
    precisions = [p.name if (p := find_precision(run)) is not None else None for run in (a, b)]
    if precisions[0] != precisions[1] and None not in precisions:
        found["precision"] = [f"{precisions[0]} {ARROW} {precisions[1]}"]
    return tuple(
        Changed(kind=kind, words=tuple(found[kind]), is_aside=kind in ("gates", "measuring"))
        for kind in ORDER
        if kind in found
    )


def effect_words(cell: CellChange) -> str:
    """`at 32: 83.2 → 180.0 tok/s, +116 %, first token 60.2 → 12.9 s`; with intervals in brackets."""
    at = cell_level(cell.cells[0])
    if cell.refusal:
        return f"{at}: {cell.refusal}"
    return f"{at}: {', '.join(_effect(f) for f in _telling(cell) if None not in f.values) or DASH}"


def main_figure(cell: CellChange) -> FigureChange | None:
    """By which the change is judged: the rate, and of arrivals that do not wait the first token."""
    return next((f for f in _telling(cell) if None not in f.values), None)


def verdict_words(figure: FigureChange | None) -> str:
    if figure is None:
        return Verdict.NOT_COMPARABLE.value
    return figure.verdict.value + (f": {figure.reason}" if figure.reason else "")


def tone(figure: FigureChange | None) -> str:
    return "warn" if figure is None else TONES.get(figure.verdict, "soft")


def method(cell: CellChange) -> str:
    """A change is worked out of measured figures, or of stated ones."""
    samples = [s for f in cell.figures for s in (f.a, f.b) if s is not None]
    return "derived from stated" if any(s.is_stated for s in samples) else "derived"


def cell_level(cell: CellRecord) -> str:
    """`at 32`, `at 0.3 requests/s`, `cold, at 32`."""
    at = f"{cell.rate_rps:g} requests/s" if cell.rate_rps is not None else str(cell.concurrency)
    return f"{cell.variant}, at {at}" if cell.variant not in ("", "primed", "single") else f"at {at}"


def names(step: Step) -> tuple[str, str]:
    """Before and after; with their engines where they are called the same."""
    runs = [row.run for row in (step.before, step.after)]
    titles = [run.profile_title for run in runs]
    if titles[0] != titles[1]:
        return titles[0], titles[1]
    engines = [engine_words(row) for row in (step.before, step.after)]
    ids = engines if engines[0] != engines[1] else [run.id for run in runs]
    return f"{titles[0]} ({ids[0]})", f"{titles[1]} ({ids[1]})"


def _telling(cell: CellChange) -> list[FigureChange]:
    """The rate, then the first token; of arrivals the first token alone. Of a mixed load the whole cell's."""
    keys = ["output_tok_per_s", "prompt_tok_per_s", "ttft_p50"]
    if cell.cells[0].kind in OPEN_KINDS:
        keys = ["ttft_p50"]
    elif cell.cells[0].kind == "ingest":
        keys = ["prompt_tok_per_s", "ttft_p50"]
    whole = [f for f in cell.figures if not f.lane] or [f for f in cell.figures if f.lane == cell.figures[0].lane]
    found = {f.headline.key: f for f in whole}
    return [found[key] for key in keys if key in found]


def _effect(figure: FigureChange) -> str:
    headline = figure.headline
    a, b = (headline.shown(value) for value in figure.values)
    is_latency = headline.unit == "ms"
    text = f"first token {a} {ARROW} {b} s" if is_latency else f"{a} {ARROW} {b} {headline.unit}"
    text = f"{figure.lane}: {text}" if figure.lane else text
    if figure.change is None:
        return text
    if is_latency and figure.change.interval is None:
        return text
    interval = "" if figure.change.interval is None else f" ({interval_words(headline, figure.change)})"
    return f"{text}, {change_words(headline, figure.change)}{interval}"


def _kind(difference: Difference, known: set[str]) -> str | None:
    """None: it is not worth a word."""
    name, sides = difference.name, (difference.a, difference.b)
    if difference.group is Group.SERVING:
        if name == "added by gate0":
            return "measuring"
        if None in sides or CONSEQUENCES.get(name) in known or (name == "image digest" and "image" in known):
            return None
        if name in CONSEQUENCES:
            return "other"
        return next(kind for kind in ("image", "engine", "model") if name.startswith(kind))
    if difference.group is Group.HOSTS:
        return "hosts" if name == "hosts" else "host software"
    return "gates" if difference.group is Group.GATES else "measuring"


def _words(name: str, a: Json, b: Json, kind: str) -> str:
    if kind == "image" and isinstance(a, str) and isinstance(b, str):
        a, b = (v[:DIGEST] if name == "image digest" else v for v in (a, b))
        repository, tag = a.rpartition(":")[::2]
        if name == "image" and repository and b.startswith(f"{repository}:"):
            a, b = tag, b.removeprefix(f"{repository}:")
    if name == "hosts":
        a, b = (_hosts(v) for v in (a, b))
    label = "" if name == kind or name in ("image digest", "engine version") else name
    return f"{label} {told(a)} {ARROW} {told(b)}".strip()


def _hosts(value: Json) -> Json:
    """`2 × DGX Spark` for two of one name."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    counts = Counter(str(v) for v in value)
    return ", ".join(name if n == 1 else f"{n} × {name}" for name, n in counts.items())


def _settings(found: Sequence[Difference]) -> Iterator[tuple[str, str]]:
    """Leaves of a setting that one side alone has are one thing: `+ speculative (method mtp, num_tokens 2)`."""
    by_setting: dict[tuple[str, ...], list[Difference]] = {}
    for difference in found:
        by_setting.setdefault(tuple(difference.name.split(".")[:2]), []).append(difference)
    for steps, leaves in by_setting.items():
        kind = SECTIONS.get(steps[0], "other")
        name = steps[-1] if kind != "other" else ".".join(steps)
        if len(leaves) > 1 and all(d.a is None for d in leaves):
            yield kind, f"+ {name} ({', '.join(f'{_leaf(d, steps)} {told(d.b)}' for d in leaves)})"
        elif len(leaves) > 1 and all(d.b is None for d in leaves):
            yield kind, f"− {name} ({', '.join(f'{_leaf(d, steps)} {told(d.a)}' for d in leaves)})"
        else:
            yield from ((kind, _setting(".".join(w for w in (name, _leaf(d, steps)) if w), d)) for d in leaves)


def _leaf(difference: Difference, steps: tuple[str, ...]) -> str:
    return ".".join(difference.name.split(".")[len(steps) :])


def _setting(name: str, difference: Difference) -> str:
    if difference.a is None:
        return f"+ {name}" if difference.b is True else f"+ {name} {told(difference.b)}"
    if difference.b is None:
        return f"− {name}" if difference.a is True else f"− {name} {told(difference.a)}"
    return f"{name} {told(difference.a)} {ARROW} {told(difference.b)}"


def _with_image(run: RunRecord) -> RunRecord:
    """A report seldom names the image; the profile that it stands for does."""
    image, model = run.profile.get("image"), run.profile.get("model")
    changes: dict[str, str] = {"image": image} if run.image is None and isinstance(image, str) else {}
    if run.source and isinstance(model, Mapping | str) and run.profile:
        name = model if isinstance(model, str) else model.get("repo") or model.get("path")
        changes |= {"model": str(name)} if name else {}
    return replace(run, **changes)  # type: ignore[arg-type]
