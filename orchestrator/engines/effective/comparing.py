"""What is declared beside what runs: one row for each declared setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.engines.effective import vllm
from orchestrator.engines.effective.documents import is_secret
from orchestrator.engines.effective.evidence import Evidence, by_name, settle, untold
from orchestrator.engines.effective.lines import name_of
from orchestrator.engines.effective.model import Agreement, Compared, Effective, NoticeKind, Reading, Told
from orchestrator.engines.effective.own_flags import compare_flag
from orchestrator.engines.effective.portable import compare_identity, compare_portable
from orchestrator.engines.effective.reading import VOICES, find_notices
from orchestrator.engines.effective.sameness import Likeness, liken
from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.flags.model import Catalogue, Flag, ValueKind
from orchestrator.engines.given import Given, given, given_words
from orchestrator.engines.words import Parser
from orchestrator.profile.model import Profile
from orchestrator.values import Json

NOT_SHOWN = frozenset({"host", "port", "api-key", "verbosity"})
"""Of what gate0 adds: where it listens is proven by asking it, and how much it logs by what can be read there."""

_WORST = (Agreement.CONTRADICTED, Agreement.IGNORED, Agreement.CHANGED, Agreement.UNCONFIRMED, Agreement.SAME)


def compare(
    profile: Profile,
    command: EngineCommand,
    readings: Sequence[Reading],
    told: Told,
    *,
    engine: str | None = None,
    catalogue: Catalogue | None = None,
) -> Effective:
    """Set every declared setting beside what the server tells.

    Args:
        command: What it was started with; its argv is empty for an attached server.
        readings: From `read`.
        engine: Whose server it is (`vllm`, …) where the profile's `engine` does not say (`endpoint`).
        catalogue: The flags of its version: defaults, flags that do nothing.

    Returns:
        Rows in the order model, served name, slots, `serve`, nodes, `flags`, `args`, what gate0 added, `env`; the
        readings and the engine's notices with them. Of `env` what the engine tells of, and what stands for a flag.
    """
    name = engine or profile.engine
    voice = VOICES.get(name)
    evidence = Evidence(
        engine=name,
        readings=by_name(readings),
        notices=find_notices(name, told),
        told=told,
        catalogue=catalogue,
        has_echo=name == "vllm" and vllm.has_echo(told),
        variables=vllm.variables(told) if name == "vllm" else {},
        words=voice.words if voice else {},
    )
    parser = voice.parser if voice else Parser(engine=name)
    flags = given(parser, command, catalogue)
    rows = (
        *compare_identity(profile, evidence),
        *(_refined(row, profile, flags, evidence) for row in compare_portable(profile, evidence)),
        *_nodes(profile, flags, evidence),
        *_flags(profile, flags, evidence),
        *_added(command, parser, evidence),
        *_layers(profile, flags, evidence),
        *_environment(profile, flags, evidence),
    )
    return Effective(readings=tuple(readings), compared=rows, notices=evidence.notices)


def _refined(row: Compared, profile: Profile, flags: Iterable[Given], evidence: Evidence) -> Compared:
    """A portable setting of which nothing tells is looked up by the flags that it became."""
    if row.agreement is not Agreement.UNCONFIRMED or row.running is not None or row.path == "serve.api_key":
        return row
    mine = [flag for flag in flags if flag.path == row.path]
    declared: Json = row.declared
    if row.path == "serve.memory_gib" and mine:
        declared = mine[0].value
    rows = [compare_flag(row.path, declared if len(mine) == 1 else flag.value, flag, evidence) for flag in mine]
    told = [r for r in rows if r.agreement is not Agreement.UNCONFIRMED]
    if not told:
        return replace(row, declared=declared)
    return replace(min(told, key=lambda r: _WORST.index(r.agreement)), declared=declared)


def _nodes(profile: Profile, flags: Iterable[Given], evidence: Evidence) -> Iterator[Compared]:
    if profile.nodes > 1:
        name = next((flag.name for flag in flags if flag.path == "nodes" and flag.name == "nnodes"), "nnodes")
        row = settle("nodes", profile.nodes, name_of(name, evidence.words), evidence)
        yield row or untold("nodes", profile.nodes)


def _flags(profile: Profile, flags: Iterable[Given], evidence: Evidence) -> Iterator[Compared]:
    for flag in flags:
        if flag.path.startswith("flags."):
            declared = profile.flags.get(flag.path.removeprefix("flags."), flag.value)
            yield compare_flag(flag.path, declared, flag, evidence)
        elif flag.path.startswith("args["):
            yield compare_flag(f"{flag.path} {flag.word}", flag.value, flag, evidence)


def _added(command: EngineCommand, parser: Parser, evidence: Evidence) -> Iterator[Compared]:
    for item in command.added:
        for flag in given_words(parser, item.words, "added", evidence.catalogue):
            if flag.name not in NOT_SHOWN:
                yield compare_flag(f"added.{flag.word}", flag.value, flag, evidence)


def _layers(profile: Profile, flags: Iterable[Given], evidence: Evidence) -> Iterator[Compared]:
    """llama-server: all layers belong on a GPU where there is one, unless the profile says how many."""
    layers = evidence.best("layers_offloaded")
    is_declared = any(flag.name == "gpu-layers" for flag in flags)
    if layers is None or is_declared or profile.container.gpus == "none":
        return
    done, _, total = str(layers.value).partition("/")
    if done in ("0", total):
        return
    yield Compared(
        path="gpu_layers",
        declared="all",
        agreement=Agreement.CONTRADICTED,
        running=layers.value,
        source=layers.source,
        quote=layers.quote,
        why="part of the model runs on the CPU",
        is_weaker=True,
    )


def _environment(profile: Profile, flags: Iterable[Given], evidence: Evidence) -> Iterator[Compared]:
    given_flags = {flag.name: flag for flag in flags}
    by_variable = {flag.env: flag for flag in evidence.catalogue.flags.values()} if evidence.catalogue else {}
    for name, value in profile.env.items():
        path = f"env.{name}"
        if value is None:
            continue
        shown = value if isinstance(value, str) else "(secret)"
        notice = evidence.notice(path, NoticeKind.IGNORED)
        if notice is not None:
            yield Compared(
                path=path,
                declared=shown,
                agreement=Agreement.IGNORED,
                source="log",
                quote=notice.quote,
                why="this version does not know the variable",
            )
        elif isinstance(value, str) and name in evidence.variables:
            running = evidence.variables[name]
            is_same = liken(value, running) is not Likeness.DIFFERENT
            yield Compared(
                path=path,
                declared=value,
                agreement=Agreement.SAME if is_same else Agreement.CONTRADICTED,
                running=running,
                source=f"/server_info vllm_env {name}",
            )
        elif isinstance(value, str) and name in by_variable and not is_secret(name):
            yield _as_flag(path, value, by_variable[name], given_flags, evidence)


def _as_flag(path: str, value: str, flag: Flag, flags: Mapping[str, Given], evidence: Evidence) -> Compared:
    """llama-server's variable that says what a flag says: the flag on the command line stands before it."""
    name = flag.name.lstrip("-")
    before = flags.get(name)
    if before is not None and liken(value, before.value, is_word=True) is not Likeness.SAME:
        why = f"{before.word} on the command line stands before it"
        return Compared(
            path=path,
            declared=value,
            agreement=Agreement.IGNORED,
            running=before.value,
            source="command line",
            why=why,
        )
    is_switch = flag.kind in (ValueKind.NONE, ValueKind.BOOL)
    read: Json = liken(True, value) is Likeness.SAME if is_switch else value
    return compare_flag(path, value, Given(path=path, word=flag.name, name=name, value=read), evidence)
