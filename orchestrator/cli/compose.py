"""Where the commands build what they need: hosts, tools, jobs. Heavy imports stay inside the functions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from orchestrator import __version__
from orchestrator.errors import Gate0Error, InputError

if TYPE_CHECKING:
    from orchestrator.engines.rules.answering import PastRun
    from orchestrator.fleet.host import Host
    from orchestrator.fleet.inventory import HostEntry
    from orchestrator.gating.suite import Suite
    from orchestrator.pipeline.campaign import Turns
    from orchestrator.pipeline.events import Cancel, Observer
    from orchestrator.pipeline.road import Box, Job, Options, Road, RunCell, Tools
    from orchestrator.profile.loading import Loaded
    from orchestrator.profile.model import Profile
    from orchestrator.records.record import RunRecord
    from orchestrator.records.store import Store
    from orchestrator.sweep.workload import Workload
    from orchestrator.values import Json, Secret
    from orchestrator.wire.chat import Claims, Target


def results_root(option: str | None) -> Path:
    """`--results`, else `GATE0_RESULTS`, else ./results."""
    return Path(option or os.environ.get("GATE0_RESULTS") or "results")


def new_run_id(profile_name: str, where: str, digest: str) -> str:
    """`<UTC>-<profile>-<hosts>-<digest6>`: sorts by time."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    hosts = "".join(c if c.isalnum() or c in "-.+" else "_" for c in where)
    return f"{stamp}Z-{profile_name}-{hosts}-{digest[:6]}"


class GitRevision:
    """The revision of the folder the user works in, asked for beside the other work: a big folder takes its time."""

    def __init__(self) -> None:
        argv = ("git", "describe", "--always", "--dirty", "--abbrev=12")
        try:
            self._asked: subprocess.Popen[str] | None = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            self._asked = None

    def read(self) -> str | None:
        """`-dirty` when there are changes; None outside a repository, or when git is not there or too slow."""
        if self._asked is None:
            return None
        try:
            out, _ = self._asked.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self._asked.kill()
            self._asked.communicate()
            return None
        return out.strip() or None if self._asked.returncode == 0 else None


def load_profile(name: str) -> Loaded:
    """A profile by name or path, checked by its engine too, and against the flags of its version, or its image's own.

    Raises:
        InvalidFile: With every problem at once.
    """
    from orchestrator.deploy.own_flags import kept_list
    from orchestrator.engines.registry import load_engines
    from orchestrator.engines.remarks import faults
    from orchestrator.profile import loading

    engines = load_engines()
    loaded = loading.load_profile(name, search=loading.search_path(), engines=tuple(engines))
    found = faults(engines[loaded.profile.engine], loaded.profile, kept_list(loaded.profile))
    if found:
        raise loading.problems_at(loaded, found)
    return loaded


def load_workloads(
    names: Sequence[str], overrides: Sequence[str], *, profile: Profile | None = None
) -> tuple[Workload, ...]:
    """Workloads by name or path with `--set key=value` applied to each.

    Raises:
        InputError: One cannot be read, or asks for longer requests than `profile` says that its server takes.
    """
    from orchestrator.sweep.loading import load_workload, search_path
    from orchestrator.sweep.overrides import parse_overrides
    from orchestrator.sweep.room import require_room

    changes = parse_overrides(overrides)
    found = tuple(load_workload(name, search=search_path(), changes=changes) for name in names)
    require_room(found, None if profile is None else profile.serve.max_model_len)
    return found


def past_runs(root: Path, profile: Profile) -> tuple[PastRun, ...]:
    """The records of this profile that are there, oldest first; one, or a store, that cannot be read is left aside.

    Their folders end with the digest's beginning, so a big store is not read for them.
    """
    from orchestrator.engines.rules.answering import PastRun
    from orchestrator.profile.digest import profile_digest
    from orchestrator.records.store import Store

    store, found, paths = Store(root), [], list[Path]()
    with suppress(OSError):
        paths = sorted(root.glob(f"*-{profile_digest(profile)[:6]}/run.json"))
    for path in paths:
        try:
            run = store.find(str(path.parent)).run
        except InputError:
            continue
        found.append(
            PastRun(
                id=run.id,
                engine=run.engine,
                model=run.model,
                profile_digest=run.profile_digest,
                image_digest=run.image_digest,
                gates=run.gates,
            )
        )
    return tuple(found)


def no_suite() -> Suite:
    """For a deploy, which gates nothing: the gates' modules stay unread."""
    from orchestrator.gating.suite_file import Suite

    return Suite(name="none", items=())


def load_suite(profile: Profile, name: str | None = None) -> Suite:
    """The profile's suite with its parameters; `name` from the command line stands over the profile's choice.

    A path in a profile is looked for beside the profile first, then from the working directory.
    Parameters of a gate that this suite does not run are left aside: a profile says what fits its model, whichever
    suite is asked for. A name that is no gate at all is the user's mistake.
    """
    from orchestrator.gating.suite import adjust_suite, load_gates, load_suite

    choice, gates = profile.gates, load_gates()
    suite = load_suite(name or _beside(profile, choice.suite), gates=gates)
    idle = set(gates) - {item.gate.name for item in suite.items}
    params = {gate: values for gate, values in choice.params.items() if gate not in idle}
    return adjust_suite(suite, params=params, optional=[gate for gate in choice.optional if gate not in idle])


def _beside(profile: Profile, suite: str) -> str:
    """The suite as the profile means it."""
    if not suite.endswith((".yaml", ".yml")) or profile.source is None:
        return suite
    path = Path(profile.source).parent / suite
    return str(path) if path.is_file() else suite


def resolve_entries(names: str | None, hosts_file: str | None) -> tuple[HostEntry, ...]:
    """`--on a,b`; None: all hosts of hosts.yaml, else this machine."""
    from orchestrator.fleet.hosts_file import LazySshConfig, find_inventory
    from orchestrator.fleet.inventory import LOCAL, all_hosts, resolve_hosts

    inventory = find_inventory(hosts_file, os.environ, cwd=Path.cwd(), home=Path.home())
    if names is not None:
        return resolve_hosts(names, inventory, LazySshConfig())
    return all_hosts(inventory, LazySshConfig()) or resolve_hosts(LOCAL, inventory, LazySshConfig())


def entries_of(profile: Profile, names: str | None, hosts_file: str | None) -> tuple[HostEntry, ...]:
    """The hosts of `--on` that a profile runs on, or the one behind a server that it attaches to."""
    return (resolve_entries if profile.attach is None else evidence_entries)(names, hosts_file)


def evidence_entries(names: str | None, hosts_file: str | None) -> tuple[HostEntry, ...]:
    """`--on HOST` of an attached server: the one host to look at; () when none is named.

    Raises:
        InputError: Several: one address has one server behind it.
    """
    entries = () if names is None else resolve_entries(names, hosts_file)
    if len(entries) > 1:
        raise InputError(
            f"an attached server is looked at on one host, `--on` names {len(entries)}",
            hint="name the host that its address belongs to",
        )
    return entries


def host_groups(profile: Profile, entries: Sequence[HostEntry]) -> tuple[tuple[HostEntry, ...], ...]:
    """One group for each run: a host each, or as many as the profile's engine spans.

    Raises:
        InputError: The number of hosts does not fit `nodes`, or an endpoint was given hosts.
    """
    if profile.attach is not None:
        return ((),)
    if profile.nodes == 1:
        return tuple((entry,) for entry in entries)
    if len(entries) != profile.nodes:
        names = ", ".join(e.name for e in entries)
        raise InputError(
            f"{profile.name} spans {profile.nodes} hosts, `--on` names {len(entries)}: {names}",
            hint="name as many hosts as the profile's `nodes`",
        )
    return (tuple(entries),)


@contextmanager
def open_hosts(entries: Sequence[HostEntry]) -> Iterator[tuple[Host, ...]]:
    """The hosts, closed at the end whatever happens."""
    from orchestrator.fleet.hosts_file import open_host

    opened: list[Host] = []
    try:
        opened.extend(open_host(entry) for entry in entries)
        for host in opened:
            threading.Thread(target=_greet, args=(host,), name="greet", daemon=True).start()
        yield tuple(opened)
    finally:
        for host in opened:
            host.close()


def _greet(host: Host) -> None:
    """Make the connection while the rest is still being read; who needs it first hears what is wrong with it."""
    with suppress(Gate0Error):
        host.run(("true",))


def open_target(url: str, model: str, claims: Claims, key: Secret | None) -> Target:
    """The server as gates see it. Imported when it is there: httpx would delay every container's start."""
    from orchestrator.wire.target import HttpTarget

    return HttpTarget(url, model, claims, api_key=key)


def known_calibration() -> Mapping[str, Json] | None:
    """What `gate0 calibrate` stored on this machine."""
    from orchestrator.pipeline.calibration import read_calibration

    return read_calibration()


def open_cell_runner(backend: str) -> AbstractContextManager[RunCell]:
    """What runs cells; imported when the first sweep begins."""
    from orchestrator.sweep.runner import CellRunner

    return CellRunner(backend=backend)


def make_tools(turns: Turns, *, backend: str = "own") -> Tools:
    """The real edge. `backend`: which client sends the load (`sweep.connections`)."""
    import time

    import orchestrator.deploy.docker  # noqa: F401 - now, while the connection is being made
    from orchestrator.deploy.open import open_runtime
    from orchestrator.deploy.own_flags import own_flags
    from orchestrator.deploy.seen_files import look_in_image
    from orchestrator.engines.registry import load_engines
    from orchestrator.fleet.facts import read_facts
    from orchestrator.fleet.lock import hold
    from orchestrator.pipeline.hostview import memory_available, other_facts, quick_facts, sample
    from orchestrator.pipeline.road import Tools

    return Tools(
        open_runtime=lambda profile, host: open_runtime(profile.runtime, host),
        open_target=open_target,
        read_facts=read_facts,
        quick_facts=quick_facts,
        other_facts=other_facts,
        memory_available=memory_available,
        sample=sample,
        lock=lambda host, run_id, why, force, notice: hold(host, run_id, why, force=force, on_notice=notice),
        cell_runner=lambda: open_cell_runner(backend),
        calibration=known_calibration,
        own_flags=lambda runtime, subject, is_cancelled: own_flags(runtime, subject, is_cancelled=is_cancelled),
        look_in_image=lambda runtime, subject, paths, stop: look_in_image(runtime, subject, paths, is_cancelled=stop),
        sweep_turn=turns,
        engines=load_engines(),
        clock=time.monotonic,
        sleep=time.sleep,
    )


def make_job(
    profile: Profile,
    *,
    resolved: Mapping[str, Json],
    text: str,
    boxes: Sequence[Box],
    suite: Suite,
    workloads: Sequence[Workload],
    options: Options,
    loaded: Loaded | None = None,
    revision: str | None = None,
    evidence: Box | None = None,
    past_runs: Sequence[PastRun] = (),
) -> Job:
    """Everything fixed before the first stage; secrets are resolved here, and here alone."""
    from orchestrator.engines.registry import get_engine, load_engines
    from orchestrator.pipeline.road import Job
    from orchestrator.profile.digest import profile_digest
    from orchestrator.profile.secrets import resolve_env

    return Job(
        profile=profile,
        profile_json=resolved,
        profile_source=text,
        digest=profile_digest(profile),
        engine=get_engine(profile.engine, load_engines()),
        boxes=tuple(boxes),
        suite=suite,
        workloads=tuple(workloads),
        env=resolve_env(profile, loaded=loaded),
        api_key=api_key(profile, is_kept=options.keep),
        options=options,
        invocation=("gate0", *sys.argv[1:]),
        git_revision=revision,
        tool_version=__version__,
        evidence=evidence,
        loaded=loaded,
        past_runs=tuple(past_runs),
    )


def make_road(
    job: Job, tools: Tools, *, store: Store, observer: Observer, cancel: Cancel, is_resumed: bool = False
) -> Road:
    """A road with a record of its own, or with the newest one of this profile on these hosts."""
    from orchestrator.pipeline.road import Road
    from orchestrator.pipeline.run import new_run, resumed

    found = None
    if is_resumed:
        found = store.newest(profile_name=job.profile.name, hosts=job.host_names)
    if found is not None and found.run.profile_digest == job.digest:
        record = resumed(found.run, job)
    else:
        record = new_run(job, new_run_id(job.profile.name, job.where, job.digest))
    writer = store.writer(record.id, secrets=job_secrets(job))
    road = Road(job, tools, writer=writer, observer=observer, cancel=cancel, run=record)
    if is_resumed:
        road.note(resume_words(found.run if found else None, record))
    return road


def job_secrets(job: Job) -> tuple[Secret, ...]:
    """All secrets that a road's record and its errors must not show."""
    from orchestrator.values import Secret

    found = tuple(value for value in job.env.values() if isinstance(value, Secret))
    return found if job.api_key is None else (*found, job.api_key)


def resume_words(found: RunRecord | None, record: RunRecord) -> str:
    """What `--resume` found."""
    if found is None:
        return "nothing to resume: no earlier run of this profile on this host; starting anew"
    if found.id != record.id:
        return f"the profile has changed since {found.id}: starting anew"
    return f"resuming {record.id}, attempt {record.attempts}"


def api_key(profile: Profile, *, is_kept: bool = False) -> Secret | None:
    """The server's key: resolved, generated, or None.

    A generated key of a server that is left up (`is_kept`) must be known to who uses it: it is in a file of the
    owner's alone, and stays the same when the profile is deployed again.
    """
    from orchestrator.profile.model import GeneratedKey
    from orchestrator.profile.secrets import generated_key_file, kept_key, resolve
    from orchestrator.values import Secret

    declared = profile.serve.api_key
    if declared is None:
        return None
    if isinstance(declared, GeneratedKey) and is_kept:
        return kept_key(generated_key_file(profile.name), lambda: token_urlsafe(24))
    if isinstance(declared, GeneratedKey):
        return Secret("api_key", token_urlsafe(24))
    return resolve(declared)
