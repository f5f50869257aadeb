"""Import a folder of other people's configurations, and hold each profile's command line against its source.

    python tools/corpus.py [FOLDER]      default: shared/corpus/recipes beside the checkout

What the source says is worked out here a second time, with nothing of the importer: PyYAML (or the bare lines, where
PyYAML gives up), plain replacement of `{key}`, shlex. Every flag and every value found so must be in the argv that the
imported profile comes to. Names are compared by what they mean (`-tp` is `--tensor-parallel-size`), numbers and JSON by
value. One thing may differ: Ray as the executor of a server over several hosts, which both tools take out themselves
when they start the ranks without it, as gate0 does. Scripts, pasted commands (`*.sh`) and units (`*.service`) are held
against their text in the same way (`corpus_shell`), with image and variables; those that start no server, here and
there, are only counted. Exit code 1 below 95 %.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from orchestrator.cli.inspecting import inspect
from orchestrator.engines.engine import Engine, Placement
from orchestrator.engines.flags.loading import choose_for
from orchestrator.engines.flags.reading import arity, find_spelling
from orchestrator.engines.flags.values import human_int
from orchestrator.engines.registry import load_engines
from orchestrator.errors import InputError
from orchestrator.foreign.importing import Imported, import_text
from orchestrator.profile.building import build_profile
from orchestrator.profile.model import Profile, RuntimeKind

if TYPE_CHECKING:
    from tools.corpus_shell import Container

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ROOT.parent / "shared" / "corpus" / "recipes"
NEEDED = 0.95
KINDS = ("sparkrun", "spark-vllm-docker", "compose", "other", "scripts", "units")
SHELL = {".sh": "scripts", ".service": "units"}
SHELLS = tuple((f"{folder}{name}",) for folder in ("", "/bin/", "/usr/bin/") for name in ("bash", "sh"))
RANKS = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless", "--dist-init-addr")
SERVERS = ("vllm serve", "sglang serve", "sglang.launch_server", "vllm.entrypoints.openai.api_server", "llama-server")
_FLAG = re.compile(r"--?[A-Za-z]")
_KEY = re.compile(r"(?<!\$)\{([A-Za-z_][\w-]*)\}")


@dataclass(slots=True, kw_only=True)
class Line:
    """One row of the table; `idle`: files that start no server; `rest`: why files are not in the last columns."""

    files: int = 0
    idle: int = 0
    imported: int = 0
    whole: int = 0
    valid: int = 0
    rest: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A command line as flags, values, and each value with its flag, all as what they mean."""

    flags: frozenset[str]
    values: frozenset[str]
    pairs: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.flags | self.values | self.pairs


def main(argv: Sequence[str]) -> int:
    """Print the table; the exit code says whether enough is whole."""
    folder = Path(argv[0]) if argv else DEFAULT
    if not folder.is_dir():
        print(f"skipped: there is no folder {folder}")
        return 0
    table = measure(folder)
    show(table)
    recipes = [table[kind] for kind in KINDS[:2]]
    is_enough = said_of("recipes", recipes)
    if any(table[kind].files for kind in SHELL.values()):
        is_enough &= said_of("scripts and units", [table[kind] for kind in SHELL.values()])
    return 0 if is_enough else 1


def said_of(what: str, lines: Sequence[Line]) -> bool:
    """Print the share of whole ones; True when it is enough."""
    files, whole = sum(line.files for line in lines), sum(line.whole for line in lines)
    share = whole / files if files else 1.0
    print(f"{what} whose profile says all that the source says: {whole} of {files}, {share:.1%} (needed: {NEEDED:.0%})")
    return share >= NEEDED


def measure(folder: Path) -> dict[str, Line]:
    """Every YAML file, script and unit of a folder, by kind."""
    engines = load_engines()
    table = {kind: Line() for kind in KINDS}
    for path in sorted(folder.glob("*.y*ml")):
        text = path.read_text(encoding="utf-8")
        value = loaded(text)
        line = table[kind_of(value)]
        line.files += 1
        try:
            outcome = import_text(text, source=path.name, engines=engines)
        except InputError as exc:
            line.rest.append(f"{path.name}: not imported: {exc.message.splitlines()[0].removeprefix(path.name)[:150]}")
            continue
        line.imported += 1
        missing = [gap for one in outcome.profiles for gap in gaps(one, value, text, engines)]
        line.whole += not missing
        if missing:
            line.rest.append(f"{path.name}: not in the argv: {', '.join(missing)[:150]}")
        objections = [text for one in outcome.profiles for text in objections_to(one, engines)]
        line.valid += not objections
        line.rest += [f"{path.name}: {text[:150]}" for text in objections[:3]]
    for path in sorted(path for path in folder.iterdir() if path.suffix in SHELL):
        measure_shell(path, table[SHELL[path.suffix]], engines)
    return table


def measure_shell(path: Path, line: Line, engines: Mapping[str, Engine]) -> None:
    """A script or a unit: what it starts, by plain reading, against what was imported."""
    from tools import corpus_shell

    text = path.read_text(encoding="utf-8", errors="replace")
    plain = corpus_shell.unit_text(text) if path.suffix == ".service" else text
    serving = corpus_shell.commands(plain)
    try:
        profiles = import_text(text, source=path.name, engines=engines).profiles
    except InputError as exc:
        profiles = ()
        if serving:
            line.files += 1
            line.rest.append(f"{path.name}: not imported: {exc.message.splitlines()[0].removeprefix(path.name)[:150]}")
        else:
            line.idle += 1
    if not profiles:
        return
    line.files += 1
    line.imported += 1
    missing = [gap for words in serving for gap in least(profiles, words, engines)]
    for container in corpus_shell.containers(plain):
        missing += container_gaps(container, profiles)
        if not corpus_shell.commands(" ".join(container.words)) and container.words[:1] not in SHELLS:
            same = [one for one in profiles if one.launch.image == container.image]
            missing += least(same, container.words, engines) if same else []
    line.whole += not missing
    if missing:
        line.rest.append(f"{path.name}: not in the profile: {', '.join(dict.fromkeys(missing))[:150]}")
    objections = [text for one in profiles for text in objections_to(one, engines)]
    line.valid += not objections
    line.rest += [f"{path.name}: {text[:150]}" for text in objections[:3]]


def least(profiles: Sequence[Imported], words: Sequence[str], engines: Mapping[str, Engine]) -> list[str]:
    """What the profile that says most of the words does not say; secrets and addresses of the source aside."""
    found = [list(lost(one, words, engines)) for one in profiles if one.draft.document["engine"] in engines]
    return min(found, key=len, default=["no profile"])


def lost(one: Imported, words: Sequence[str], engines: Mapping[str, Engine]) -> Iterator[str]:
    from tools import corpus_shell

    profile = build_profile(one.draft.document)
    engine = engines[profile.engine]
    if engine.problems(profile):
        yield f"no argv: {engine.problems(profile)[0][1]}"
        return
    argv = engine.command(profile, Placement(nodes=profile.nodes)).argv
    rendered = said(profile, [*front(profile), *argv])
    kept = without_keys(without_ranks(words) if profile.nodes > 1 else words)
    yield from sorted(gap for gap in said(profile, kept).all - rendered.all if corpus_shell.OPEN not in gap)


def without_keys(words: Sequence[str]) -> list[str]:
    """Without keys: no profile has one, only a reference."""
    kept: list[str] = []
    skips = False
    for word in words:
        is_key = re.match(r"--?(?:api-key|hf-token|hft|admin-api-key)(?:=|$)", word.replace("_", "-")) is not None
        if not skips and not is_key:
            kept.append(word)
        skips = is_key and "=" not in word
    return kept


def container_gaps(container: Container, profiles: Sequence[Imported]) -> Iterator[str]:
    """The image and the variables of a container that some profile is of; other containers are none of ours."""
    same = [build_profile(one.draft.document) for one in profiles if one.launch.image == container.image]
    if not same:
        if "$" not in container.image and any("--max-model-len" in word or word == "serve" for word in container.words):
            yield f"image {container.image}"
        return
    known = min((container.env - set(profile.env) for profile in same), key=len)
    yield from (f"env {name}" for name in sorted(known) if not re.search(r"KEY|TOKEN|SECRET|[$]", name))


def show(table: Mapping[str, Line]) -> None:
    head = ("kind", "files", "imported", "argv whole", "validate")
    rows = [(k, x.files, x.imported, x.whole, x.valid) for k, x in table.items() if x.files or x.idle]
    for row in (head, *rows):
        print(f"{row[0]:<20}" + "".join(f"{cell!s:>12}" for cell in row[1:]))
    for kind, line in table.items():
        for text in line.rest:
            print(f"  {kind}: {text}")
        if line.idle:
            print(f"  {kind}: {line.idle} more start no server")


def objections_to(one: Imported, engines: Mapping[str, Engine]) -> list[str]:
    """What `gate0 validate` says against the profile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{one.name}.yaml"
        path.write_text(one.text, encoding="utf-8")
        found = inspect(str(path), engines).diagnostics
    return [f"{d.code}: {d.path}: {d.message}" for d in found if d.severity == "error"]


def gaps(one: Imported, value: Any, text: str, engines: Mapping[str, Engine]) -> Iterator[str]:
    """What the source says and the profile's argv does not."""
    profile = build_profile(one.draft.document)
    engine = engines[profile.engine]
    if engine.problems(profile):
        yield f"no argv: {engine.problems(profile)[0][1]}"
        return
    argv = engine.command(profile, Placement(nodes=profile.nodes)).argv
    rendered = said(profile, [*front(profile), *argv])
    for source in sources(value, text, one):
        wanted = said(profile, without_ranks(source) if profile.nodes > 1 else source)
        yield from sorted(wanted.all - rendered.all)


def without_ranks(words: Sequence[str]) -> list[str]:
    """Without the flags by which ranks find each other: those are each host's own."""
    kept: list[str] = []
    skips = False
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name in RANKS or skips:
            skips = name in RANKS and name != "--headless" and "=" not in word
            continue
        kept.append(word)
    return kept


def front(profile: Profile) -> tuple[str, ...]:
    """What stands before the engine's words."""
    if profile.runtime is RuntimeKind.PROCESS:
        return (profile.binary or "",)
    return profile.container.entrypoint or ()


def said(profile: Profile, words: Sequence[str]) -> Said:
    """Flags by their one name, values as JSON says them; `--flag=value` is both."""
    chosen = choose_for(profile)
    flags: set[str] = set()
    values: set[str] = set()
    pairs: set[str] = set()
    owner, is_human = "", False
    for given in words:
        word = digits(given) if is_human else given
        if not _FLAG.match(word):
            values.add(meaning(word))
            pairs |= {f"{owner} {meaning(word)}"} if owner else set()
            continue
        owner = ""
        name, has_value, inline = word.partition("=")
        known = find_spelling(chosen.catalogue, name) if chosen else None
        is_human = known is not None and known.flag is not None and known.flag.is_human_int
        inline = digits(inline) if is_human else inline
        if known is not None and known.flag is not None:
            dotted = f".{known.dotted}" if known.dotted else ""
            name = f"{'not:' if known.is_negative else 'mean:'}{known.flag.name}{dotted}"
            values |= {meaning(v) for v in known.values if not has_value}
            owner = name if arity(known.flag, is_negative=known.is_negative)[0] and not has_value else ""
        flags.add(name)
        if has_value:
            values.add(meaning(inline))
            pairs.add(f"{name} {meaning(inline)}")
    # The model as a bare word and behind its flag are one.
    models = ("mean:--model", "mean:--model-path", "mean:--hf-repo")
    flags -= set(models)
    pairs = {pair for pair in pairs if pair.split(" ")[0] not in models}
    return Said(flags=frozenset(flags), values=frozenset(values), pairs=frozenset(pairs))


def digits(word: str) -> str:
    """`32k` as 32000, for a flag that takes it so."""
    number = human_int(word)
    return word if number is None else str(number)


def meaning(word: str) -> str:
    """Numbers and JSON by value, everything else as it is."""
    for text in (word, word.replace("{{", "{").replace("}}", "}")):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        plain = int(value) if isinstance(value, float) and value.is_integer() else value
        return json.dumps(plain, sort_keys=True)
    return json.dumps(word)


def kind_of(value: Any) -> str:
    if not isinstance(value, dict):
        return "other"
    if "services" in value:
        return "compose"
    if "framework" in value or not {"command", "container", "model"} & set(value):
        return "other"
    return "spark-vllm-docker" if str(value.get("recipe_version")) == "1" and "runtime" not in value else "sparkrun"


def loaded(text: str) -> Any:
    """The document as PyYAML reads it; where it gives up, what the bare lines say."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return by_lines(text)


def by_lines(text: str) -> dict[str, Any]:
    """Scalars, one level of mappings, and block texts of a file that is no YAML."""
    found: dict[str, Any] = {}
    for key, rest, body in re.findall(r"(?m)^([\w-]+):[ \t]*(.*)\n((?:(?:[ \t].*)?\n)*)", text + "\n"):
        if rest.startswith(("|", ">")):
            lines = [line for line in body.splitlines() if line.strip()]
            found[key] = "\n".join(line[2:] for line in lines)
        elif rest.strip():
            found[key] = plain(rest)
        else:
            found[key] = {k: plain(v) for k, v in re.findall(r"(?m)^  ([\w-]+):[ \t]*(.+)$", body)}
    return found


def plain(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def sources(value: Any, text: str, one: Imported) -> Iterator[list[str]]:
    """The words of the source's command, from the program on."""
    if not isinstance(value, dict):
        return
    if "services" in value:
        service = value["services"].get(one.launch.name) or {}
        yield from of_service(service)
        return
    keys = [key for key in value if key == "command" or str(key).startswith("command_")]
    wanted = [key for key in keys if len(keys) == 1 or str(one.launch.name).endswith(key.removeprefix("command_"))]
    for key in wanted:
        yield words_of(substituted(str(value[key]), value))


def substituted(command: str, recipe: Mapping[str, Any]) -> str:
    """Each `{key}` replaced by its default, again and again."""
    defaults = recipe.get("defaults") or {}
    known = {"host": "0.0.0.0", "port": "8000", "model": recipe.get("model"), **defaults}
    for _ in range(5):
        command = _KEY.sub(lambda m: str(known[m[1]]) if known.get(m[1]) is not None else m[0], command)
    return command


def words_of(text: str) -> list[str]:
    """Shell words from the server's program to the end of its command, shell variables left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines) + "\n")
    begin = min((at for server in SERVERS if (at := joined.rfind(server)) >= 0), default=None)
    if begin is None:
        return []
    words = shlex.split(joined[begin:])
    end = next((i for i, word in enumerate(words) if word in {"&&", "||", ";", "|", "&"}), len(words))
    program = 1 if "." in words[0] or words[0] == "llama-server" else 2
    return [word for word in words[program:end] if "$" not in word]


def of_service(service: Mapping[str, Any]) -> Iterator[list[str]]:
    command = service.get("command") or ""
    words = command if isinstance(command, list) else shlex.split(interpolated(str(command)))
    whole = [interpolated(str(word)) for word in words]
    if whole[:1] and whole[0] in {"bash", "sh", "/bin/bash", "/bin/sh"}:
        return
    text = " ".join(shlex.quote(word) for word in whole)
    yield words_of(text) or [word for word in whole if word != "serve" and "$" not in word]


def interpolated(text: str) -> str:
    """`${NAME:-default}`, inner ones first; `$$` is one `$`."""
    for _ in range(6):
        text = re.sub(r"(?<!\$)\$\{\w+:?-([^${}]*)\}", r"\1", text)
    return text.replace("$$", "$")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
