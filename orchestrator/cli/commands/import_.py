"""`gate0 import`: other people's configurations as profiles, and what other tools measured as foreign records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, results_option

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", metavar="FILE|DIR", help="configuration: default stdout; DIR/ for a file a profile")
@click.option("--service", metavar="NAME", help="configuration: the one server of several")
@click.option("--image", metavar="IMAGE", help="configuration: this image, for a command that names none")
@click.option("--force", is_flag=True, help="configuration: write over a profile that is there")
@click.option(
    "--workload", metavar="NAME", help="result: stand in the tables of this workload; default the tool's name"
)
@click.option("--note", default="", metavar="TEXT", help="result: what should be known of it, as the tool's version")
@results_option
@json_option
def import_(
    *,
    files: tuple[str, ...],
    output: str | None,
    service: str | None,
    image: str | None,
    force: bool,
    workload: str | None,
    note: str,
    results: str | None,
    as_json: bool,
) -> int:
    """Turn a configuration into a profile, or results into a record. Each FILE is recognised by its content; - is
    standard input.

    A configuration's profile goes to stdout or `-o`, and what was kept, translated, dropped, or needs a person is
    told line by line on stderr and in comments at the profile's end. Exit code 1: the profile was written and does not
    pass `gate0 validate`, which says why.

    \b
    sparkrun, spark-vllm-docker  recipes of any version
    docker                       `docker run` lines and scripts, compose files
    others                       systemd units, Kubernetes manifests, a bare `vllm serve …`, `llama-server …`

    Result files of one tool become one record, a transcript one for each configuration.

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
    from orchestrator.cli import configurations
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import InputError
    from orchestrator.records.exchange.importing import UnknownResult

    printer = Printer(is_json=as_json)
    if "-" in files and configurations.is_typed():
        printer.progress("reading the configuration from standard input; Ctrl-D ends it")
    sources = [configurations.read_source(name) for name in files]
    configured = [configurations.is_configuration(source) for source in sources]
    wish = configurations.Wish(output=output or "-", service=service, image=image, is_forced=force)
    if all(configured):
        return configurations.import_configurations(sources, wish, printer)
    if "-" in files and not any(configured):
        raise configurations.neither(sources, InputError("standard input is no result that gate0 reads from there"))
    if any(configured) or "-" in files:
        odd = next(source.name for source, is_known in zip(sources, configured, strict=True) if not is_known)
        raise InputError(f"{odd} is no configuration", hint="import results by themselves, from files")
    try:
        return _import_results(files, workload=workload, note=note, results=results, printer=printer)
    except UnknownResult as exc:
        raise configurations.neither(sources, exc) from exc


def _import_results(
    files: tuple[str, ...], *, workload: str | None, note: str, results: str | None, printer: Printer
) -> int:
    from orchestrator.cli.compose import results_root
    from orchestrator.records.exchange.importing import find_imported, merged, read_files, write_foreign
    from orchestrator.records.store import Store

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
