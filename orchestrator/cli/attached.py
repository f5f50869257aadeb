"""A road without a host: what `check` and `sweep` do with a server that someone else started."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.errors import InputError

if TYPE_CHECKING:
    from orchestrator.fleet.host import Host
    from orchestrator.gating.suite import Suite
    from orchestrator.pipeline.events import Cancel, Observer
    from orchestrator.pipeline.road import Road
    from orchestrator.profile.model import Profile
    from orchestrator.records.store import Store
    from orchestrator.values import Json


_KEY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What the command line says of the server.

    Attributes:
        suite: None: not gated, and marked so.
        on: A host to look at for evidence; container: the server's there, by name.
    """

    url: str
    model: str | None = None
    engine: str | None = None
    suite: str | None = None
    gate_overrides: tuple[str, ...] = ()
    max_model_len: int | None = None
    slots: int | None = None
    tools: bool | None = None
    key_name: str | None = None
    workloads: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    resume: bool = False
    backend: str = "own"
    budget_s: float | None = None
    events: str | None = None
    progress: str | None = None
    on: str | None = None
    hosts_file: str | None = None
    container: str | None = None


def gate_and_sweep(attached: Attached, *, results: str | None, as_json: bool, quiet: bool) -> int:
    """Reach it, gate it if asked, sweep it if asked, write the record.

    Raises:
        InputError: A container is named, and no host that it would be on.
    """
    from orchestrator.cli import compose
    from orchestrator.cli.commands.run import serving_of, show_roads
    from orchestrator.cli.eventlog import answer_file, observed
    from orchestrator.cli.live import LiveView
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.signals import cancel_on_signals
    from orchestrator.pipeline.campaign import exit_code
    from orchestrator.pipeline.events import Cancel
    from orchestrator.pipeline.run import travel
    from orchestrator.records.store import Store

    if attached.container is not None and attached.on is None:
        raise InputError(
            f"`--container {attached.container}` is looked for on a host, and none is named",
            hint="add `--on HOST`, or leave it out: gating and sweeping need the address alone",
        )
    out = answer_file(events=attached.events, progress=attached.progress, is_json=as_json)
    printer = Printer(is_json=as_json, is_quiet=quiet, stdout=out)
    roads: list[Road] = []
    store, cancel = Store(compose.results_root(results)), Cancel()
    entries = compose.evidence_entries(attached.on, attached.hosts_file)
    with (
        compose.open_hosts(entries) as hosts,
        cancel_on_signals(cancel, printer),
        LiveView(printer) as live,
        observed(
            live, events=attached.events, progress=attached.progress, serving=lambda where: serving_of(roads, where)
        ) as view,
    ):
        roads.append(_road(attached, hosts, store=store, view=view, cancel=cancel))
        travel(roads[0])
    show_roads(printer, store, roads)
    return exit_code([roads[0].error])


def _road(attached: Attached, hosts: Sequence[Host], *, store: Store, view: Observer, cancel: Cancel) -> Road:
    from orchestrator.cli import compose
    from orchestrator.pipeline.campaign import Turns
    from orchestrator.pipeline.road import Box, Options
    from orchestrator.profile.digest import as_json

    profile = attached_profile(attached)
    job = compose.make_job(
        profile,
        resolved=as_json(profile),
        text="",
        boxes=(),
        suite=_suite(attached),
        workloads=compose.load_workloads(attached.workloads, attached.overrides),
        options=Options(
            is_gated=attached.suite is not None,
            tools=attached.tools,
            budget_s=attached.budget_s,
            going_on="without `--gates` it is swept all the same, and every figure is marked",
        ),
        revision=compose.GitRevision().read(),
        evidence=Box(host=hosts[0]) if hosts else None,
    )
    tools = compose.make_tools(Turns(together=False), backend=attached.backend)
    return compose.make_road(job, tools, store=store, observer=view, cancel=cancel, is_resumed=attached.resume)


def attached_profile(attached: Attached) -> Profile:
    """The profile that the command line amounts to.

    Raises:
        InputError: The address cannot be used, or a key was given where its name belongs (neither is shown).
    """
    from orchestrator.profile.model import ModelRef, Profile, SecretRef, Serve
    from orchestrator.wire.target import base_url_of

    url = base_url_of(attached.url)
    parts = urlsplit(url)
    name = "".join(c if c.isalnum() or c in "-." else "-" for c in parts.netloc)
    return Profile(
        name=f"endpoint-{name}",
        engine=attached.engine or "endpoint",
        title=f"server at {parts.netloc}",
        model=ModelRef(repo=attached.model),
        served_name=attached.model,
        attach=url,
        attach_container=attached.container,
        slots=attached.slots,
        serve=Serve(
            max_model_len=attached.max_model_len,
            api_key=SecretRef(name=_key_name(attached.key_name)) if attached.key_name else None,
        ),
    )


def _key_name(text: str) -> str:
    if _KEY_NAME.fullmatch(text) is None:
        raise InputError(
            "--api-key takes the name of an environment variable, not the key itself",
            hint="`export SERVER_KEY=…`, then `--api-key SERVER_KEY`; a key on a command line is seen by every user",
        )
    return text


def _suite(attached: Attached) -> Suite:
    from orchestrator.gating.suite import adjust_suite, load_gates, load_suite

    params: dict[str, dict[str, Json]] = {}
    for word in attached.gate_overrides:
        key, equals, value = word.partition("=")
        gate, dot, param = key.partition(".")
        if not (equals and dot and gate and param):
            raise InputError(
                f"cannot read --set {word}", hint="write it as GATE.PARAM=VALUE, as in coherence.at_once=2"
            )
        params.setdefault(gate, {})[param] = _parsed(value)
    return adjust_suite(load_suite(attached.suite or "quick", gates=load_gates()), params=params, optional=())


def _parsed(value: str) -> Json:
    import json

    try:
        found: Json = json.loads(value)
    except json.JSONDecodeError:
        return value
    return found
