"""Pieces to one command line: prefix, pieces, the profile's flags, what gate0 adds, the verbatim tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import ADDED, Added, EngineCommand, Placement
from orchestrator.engines.pieces import Step, Translation, translate
from orchestrator.engines.words import Declaration, Parser, declared, flag_names, twice, words
from orchestrator.errors import InputError
from orchestrator.profile.model import EnvValue, Profile, RuntimeKind

Problems = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """Something that measuring needs on the command line. `words` are left out when declared or refused."""

    words: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an engine with flags consists of.

    Attributes:
        default_port: Where it listens when nobody says otherwise.
        slots_flag: Canonical name of the flag that fixes the number of parallel requests.
    """

    parser: Parser
    steps: tuple[Step, ...]
    default_port: int
    slots_flag: str
    api_key_env: str | None = None


def find_problems(recipe: Recipe, profile: Profile) -> Problems:
    """Everything in the profile that this engine cannot express or that is said twice."""
    translation = translate(profile, _any_place(profile), recipe.steps)
    own = declared(recipe.parser, profile)
    return (
        *_missing(profile),
        *((path, message) for path, message in _foreign(profile)),
        *((refused.path, refused.message) for refused in translation.refused),
        *_twice_declared(recipe.parser, translation, own),
        *twice(recipe.parser, profile.flags),
        *_address_problems(profile, own),
        *_key_problems(recipe, profile, own),
    )


def assemble(
    recipe: Recipe,
    profile: Profile,
    place: Placement,
    *,
    prefix: tuple[str, ...],
    wants: Sequence[Want],
    env: Mapping[str, EnvValue] | None = None,
) -> EngineCommand:
    """The command line for one rank.

    Args:
        prefix: Words before the pieces: program, subcommand.
        wants: What to add for measuring; `--host` and `--port` are added here.

    Raises:
        InputError: The profile has problems, each named.
    """
    problems = find_problems(recipe, profile)
    translation = translate(profile, place, recipe.steps)
    problems = problems or tuple((refused.path, refused.message) for refused in translation.refused)
    if problems:
        raise InputError("\n".join(f"{profile.name}: {path}: {message}" for path, message in problems))
    own = declared(recipe.parser, profile)
    port = port_of(recipe, profile, own)
    given = {*own, *flag_names(recipe.parser, [word for piece in translation.pieces for word in piece.words])}
    refused = {recipe.parser.canonical(name) for name in profile.refuse_added}
    added = tuple(
        Added(words=want.words, reason=want.reason)
        for want in (*_address_wants(profile, port), *wants)
        if not {*flag_names(recipe.parser, want.words)} & (given | refused)
    )
    written = (
        *(("", word) for word in prefix),
        *((piece.path, word) for piece in translation.pieces for word in piece.words),
        *(("port", word) for word in (("--port", str(profile.port)) if profile.port is not None else ())),
        *((f"flags.{key}", word) for key, value in profile.flags.items() for word in words(recipe.parser, key, value)),
        *((ADDED, word) for item in added for word in item.words),
        *((f"args[{index}]", word) for index, word in enumerate(profile.args)),
    )
    return EngineCommand(
        argv=tuple(word for _, word in written),
        origins=tuple(origin for origin, _ in written),
        env={name: value for name, value in (env or {}).items() if name not in profile.env},
        added=added,
        port=port,
        slots=profile.serve.max_num_seqs or _as_int(own.get(recipe.slots_flag)),
        api_key_env=recipe.api_key_env,
        notes=tuple(piece.note for piece in translation.pieces if piece.note),
    )


def port_of(recipe: Recipe, profile: Profile, own: Mapping[str, Declaration]) -> int:
    """Where the server listens: `port`, else the profile's own flag, else the engine's default."""
    return profile.port or _as_int(own.get("port")) or recipe.default_port


def listen_address(profile: Profile) -> str:
    """Loopback only when the profile wants it and no container network stands between."""
    direct = profile.runtime is RuntimeKind.PROCESS or profile.container.network == "host"
    return "127.0.0.1" if profile.expose == "loopback" and direct else "0.0.0.0"


def _address_wants(profile: Profile, port: int) -> tuple[Want, ...]:
    host = Want(words=("--host", listen_address(profile)), reason="explicit, because the engines' defaults differ")
    if profile.port is not None:
        return (host,)
    return (host, Want(words=("--port", str(port)), reason="explicit, because the engines' defaults differ"))


def _any_place(profile: Profile) -> Placement:
    return Placement(nodes=profile.nodes)


def _missing(profile: Profile) -> Problems:
    if profile.runtime is RuntimeKind.DOCKER and not profile.image:
        return (("image", "runtime: docker needs an image"),)
    if profile.runtime is RuntimeKind.PROCESS and not profile.binary:
        return (("binary", "runtime: process needs the engine's executable, a name on the PATH or a path"),)
    return ()


def _foreign(profile: Profile) -> Problems:
    return (
        *(
            (("command", "only engine: generic takes a verbatim command; use flags and args"),)
            if profile.command
            else ()
        ),
        *((("attach", "only engine: endpoint attaches to a URL"),) if profile.attach else ()),
    )


def _twice_declared(parser: Parser, translation: Translation, own: Mapping[str, Declaration]) -> Problems:
    return tuple(
        (own[name].path, f"also given as {piece.path}; give it once")
        for piece in translation.pieces
        for name in dict.fromkeys((*flag_names(parser, piece.words), *piece.claims))
        if name in own
    )


def _address_problems(profile: Profile, own: Mapping[str, Declaration]) -> Problems:
    found = []
    if profile.port is not None and "port" in own:
        found.append((own["port"].path, "also given as port; give it once"))
    if "port" in own and profile.port is None and _as_int(own["port"]) is None:
        found.append((own["port"].path, f"not a port number: {own['port'].value}"))
    if "host" in own and profile.expose == "loopback" and own["host"].value not in {"127.0.0.1", "localhost", "::1"}:
        found.append((own["host"].path, f"{own['host'].value} contradicts expose: loopback; give one of the two"))
    return tuple(found)


def _key_problems(recipe: Recipe, profile: Profile, own: Mapping[str, Declaration]) -> Problems:
    found = []
    if "api-key" in own:
        found.append(
            (own["api-key"].path, "a key on the command line is seen by all; use serve.api_key: {secret: NAME}")
        )
    if profile.serve.api_key is None:
        return tuple(found)
    if recipe.api_key_env is None:
        found.append(
            (
                "serve.api_key",
                f"{recipe.parser.engine} takes its key on the command line only, where everyone on the host reads it; "
                "use expose: loopback",
            )
        )
    elif recipe.api_key_env in profile.env:
        found.append((f"env.{recipe.api_key_env}", "also given as serve.api_key; give it once"))
    return tuple(found)


def _as_int(declaration: Declaration | None) -> int | None:
    if declaration is None or isinstance(declaration.value, bool):
        return None
    text = str(declaration.value)
    return int(text) if text.isdigit() else None
