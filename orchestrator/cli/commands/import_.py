"""`gate0 import`: what other tools measured, as records marked foreign."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import json_option, results_option


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--workload", metavar="NAME", help="stand in the tables of this workload; default the tool's name")
@click.option("--note", default="", metavar="TEXT", help="what should be known of it, as the tool's version or the box")
@results_option
@json_option
def import_(*, files: tuple[str, ...], workload: str | None, note: str, results: str | None, as_json: bool) -> int:
    """Read result FILEs of one tool into one record, a transcript into one for each configuration.

    Each file is recognised by its content.

    \b
    vLLM        `bench serve` JSON, with `--save-detailed` or not, appended ones too; a sweep's summary.json;
                InferenceX's bench and its agg_*.json
    llama-benchy                 JSON, CSV
    SGLang                       bench_serving JSONL
    GuideLLM                     report JSON, version 2
    AIPerf, GenAI-Perf           profile_export_aiperf.json, with profile_export.jsonl beside it when given
    inference-perf               summary, stage and per-request lifecycle metrics
    llama-bench                  JSON, JSONL, CSV
    gate0-transcript/1           YAML: the figures of a report, typed off (samples/reports)

    The record keeps each figure with the tag of its tool's own definition, the requests' stamps where a file has them,
    and the file itself with its keys and passwords as ***. It has no gates, and nothing of it is marked best.
    """
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.records.exchange.importing import find_imported, merged, read_files, write_foreign
    from orchestrator.records.store import Store

    printer = Printer(is_json=as_json)
    store = Store(results_root(results))
    runs = read_files([Path(name) for name in files])
    read = {(f.name, "" if f.is_alone else f.digest): f for run in runs for f in run}.values()
    for file in read:
        printer.progress(f"{file.name}: {file.content.form}, {file.content.name}")
    done = []
    for run in runs:
        known = find_imported(store, run)
        run_id = known.run.id if known else write_foreign(store, run, workload=workload, note=note)
        points = merged(run).points
        counts = f"{_count(len(points), 'point')}, {_count(sum(len(p.requests) for p in points), 'request')}"
        printer.answer(f"{'already imported as' if known else 'imported as'} {run_id}: {counts}")
        done.append({"run": run_id, "is_new": known is None, "points": len(points)})
    forms = [{"file": f.name, "form": f.content.form, "tool": f.content.tool} for f in read]
    alone = done[0] if len(done) == 1 else {}
    printer.document({**alone, "runs": done, "files": forms})
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
