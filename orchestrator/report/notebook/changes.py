"""What changed, what it did: each configuration against the one that it extends, and against its earlier builds."""

from __future__ import annotations

from typing import Any

from orchestrator.report.compare_words import HEAD, NUMBERS, caption, workload_tables
from orchestrator.report.lineage import Step, steps
from orchestrator.report.notebook.book import Book, Section, anchor, run_anchor
from orchestrator.report.notebook.identity import is_foreign
from orchestrator.report.step_words import (
    changed,
    effect_words,
    main_figure,
    method,
    names,
    tone,
    verdict_words,
)


def section(book: Book) -> Section | None:
    found = steps(book.rows)
    if not found:
        return None
    return Section(
        id="changes",
        title="What changed, what it did",
        template="changes.html.j2",
        data={
            "rows": [_row(step) for step in found],
            "head": HEAD,
            "numbers": NUMBERS,
            "caption": next((c for s in found if (c := caption(s.comparison))), ""),
        },
    )


def _row(step: Step) -> dict[str, Any]:
    before, after = names(step)
    figure = None if step.headline is None else main_figure(step.headline)
    runs = step.before.run, step.after.run
    kept = "\n".join(run.id for run in runs)
    return {
        "id": f"change-{anchor(step.after.run.id)}-{anchor(step.before.run.id)}",
        "before": before,
        "after": after,
        "before_anchor": run_anchor(step.before),
        "after_anchor": run_anchor(step.after),
        "is_same_profile": step.is_same_profile,
        "path": [(a.name, a.configuration is not None) for a in step.path],
        "foreign": is_foreign(step.after),
        "ungated": [run.profile_title for run in runs if run.is_ungated],
        "changed": changed(step),
        "effect": "" if step.headline is None else effect_words(step.headline),
        "method": "" if step.headline is None else method(step.headline),
        "workload": "" if step.headline is None else step.headline.cells[0].workload,
        "verdict": verdict_words(figure) if step.headline is not None else "no load in common",
        "tone": tone(figure) if step.headline is not None else "soft",
        "overall": "" if step.overall is None else f"{_oldest(step)}: {effect_words(step.overall)}",
        "tables": workload_tables(step.comparison),
        "hidden": step.hidden,
        "command": f"gate0 compare {kept.replace(chr(10), ' ')}",
    }


def _oldest(step: Step) -> str:
    return next((a.name for a in step.path if a.configuration is not None), "")
