"""A launch as a profile's document, and what became of every word of it.

The order of the steps: who serves, which model, where it listens, on how many hosts, what is portable, what gate0 adds
by itself, then the engine's own flags, and word for word what is left. A step takes the items that it has an answer
for; what remains at the end was answered by nobody, and there is no such step that drops an item without a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from orchestrator.engines import llamacpp, sglang, vllm
from orchestrator.engines.assembly import Recipe
from orchestrator.engines.engine import Engine, Placement
from orchestrator.engines.flags.absence import whereabouts
from orchestrator.engines.flags.loading import choose, choose_for, wanted_version
from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.images import split_image
from orchestrator.foreign.containers import container, variables
from orchestrator.foreign.env_values import say
from orchestrator.foreign.hiding import hidden, masked
from orchestrator.foreign.inverse import Document, Inverse
from orchestrator.foreign.items import MODEL, STRAY, Item, read_items, take_equal, worked_out
from orchestrator.foreign.keyed import keyed
from orchestrator.foreign.loss import in_order
from orchestrator.foreign.model import Draft, Fate, Launch, Note
from orchestrator.foreign.naming import profile_name, profile_title
from orchestrator.foreign.programs import Program, find_program
from orchestrator.foreign.serving import (
    IN_CONTAINERS,
    NOT_NAMED,
    entrypoint_of,
    model_of,
    model_text,
    said_by_env,
    task_of,
)
from orchestrator.foreign.spanning import Span, span_of
from orchestrator.foreign.verbatim import verbatim
from orchestrator.foreign.waiting import OPEN, WAITS, awaited, is_asked_for, open_words, waits, without_open
from orchestrator.foreign.withholding import key_in, refer, secret_values, shown_item, withhold
from orchestrator.profile.building import build_profile
from orchestrator.values import Json

ENGINES: Mapping[str, tuple[Engine, Recipe]] = {
    "vllm": (vllm.ENGINE, vllm.RECIPE),
    "sglang": (sglang.ENGINE, sglang.RECIPE),
    "llamacpp": (llamacpp.ENGINE, llamacpp.RECIPE),
}
ORDER = (
    *("name", "title", "note", "engine", "engine_version", "task", "runtime", "image", "pull", "binary", "model"),
    *("served_name", "port", "expose", "serve", "flags", "args", "env", "command", "nodes", "container", "ready"),
    *("gates", "workloads", "allow_unknown_flags", "refuse_added"),
)
FILE_FLAGS = frozenset({"--chat-template", "--chat-template-file", "--tool-parser-plugin", "--reasoning-parser-plugin"})
OFFICIAL = frozenset({"vllm/vllm-openai", "lmsysorg/sglang", "ggml-org/llama.cpp", "ggerganov/llama.cpp"})
"""The engines' own images, without the registry."""


def translate(launch: Launch) -> Draft:
    """The profile that a launch comes to.

    Raises:
        InputError: Nothing can be made of it; the message says what it is and what is supported.
    """
    program = find_program(launch)
    if program.engine == "generic":
        return verbatim(launch, program)
    if not launch.image and launch.form in IN_CONTAINERS:
        launch = replace(launch, image=NOT_NAMED)
    return _Translation(launch, program).draft()


class _Translation:
    """One launch on its way to a document."""

    def __init__(self, launch: Launch, program: Program) -> None:
        self.launch = launch
        self.program = program
        self.engine, self.recipe = ENGINES[program.engine]
        self.entrypoint, self.base, self.notes = entrypoint_of(launch, program)
        self.base |= {"name": "imported", "engine": program.engine}
        if launch.engine_version and wanted_version(build_profile(self.base)) is None:
            self.base["engine_version"] = launch.engine_version
        self.catalogue = self._catalogue()
        by_env = said_by_env(launch, self.catalogue)
        self.launch = by_env.launch
        self.notes += by_env.notes
        places = launch.places[program.at :] if program.at >= 0 else ("",) * -program.at + launch.places
        self.open = open_words(program.rest, launch.notes)
        told = without_open((*program.rest, *by_env.words), places, self.open, may_be_model=program.engine == "vllm")
        read = read_items(program.engine, self.catalogue, told.words, told.places)
        self.withheld = withhold(read, program.engine, self.recipe.api_key_env)
        self.items = self.withheld.items
        self.secrets = (*self.withheld.secrets, *secret_values(launch))
        self.notes += told.notes
        self.said: dict[int, Note] = {}
        self.verbatim = _before_strays([item for item in self.items if not self.open.intersection(item.words)])
        self.left: list[Item] = list(self.items)
        self.document: Document = dict(self.base)
        self.extra: list[Note] = list(self.withheld.notes)
        self.where_serve: dict[str, tuple[Item, ...]] = {}
        if self.withheld.api_key is not None:
            self._serve("api_key", {"secret": self.withheld.api_key})

    def draft(self) -> Draft:
        self._waiting()
        self._files()
        self._model()
        self._once_only()
        span = self._span()
        self._task()
        self._settings()
        self._spread(span)
        self._added()
        self._flags()
        self._agree()
        return self._done(span)

    def _catalogue(self) -> Catalogue:
        chosen = choose_for(build_profile(self.base))
        return chosen.catalogue if chosen is not None else choose(self.engine.name, None).catalogue

    def take(self, items: Sequence[Item], fate: Fate, why: str) -> None:
        for item in items:
            is_told = fate not in {Fate.KEPT, Fate.TRANSLATED} or item.name == MODEL
            if not is_told and any(map(waits, item.words)):
                told = f"{why}: waits for {awaited(item.words)}, write the value"
                self.said[id(item)] = Note(fate=Fate.PERSON, what=shown_item(item), where=_place(item), why=told)
                continue
            self.said[id(item)] = Note(fate=fate, what=shown_item(item), where=_place(item), why=why)
        self.left = [item for item in self.left if id(item) not in self.said]

    def _waiting(self) -> None:
        """Where it listens, when only the shell knows it: gate0 has an address of its own."""
        for name, key in (("--port", "port"), ("--host", "expose")):
            for item in [i for i in self.left if i.name == name and any(is_asked_for(name, v) for v in i.values)]:
                what = awaited(item.values) or " ".join(f"`{value}`" for value in item.values)
                self.take([item], Fate.PERSON, f"waits for {what}: left out, write `{key}`")
        for item in [i for i in self.left if i.name == STRAY and self.open.intersection(i.words)]:
            self.take([item], Fate.PERSON, OPEN)

    def _files(self) -> None:
        """Files that the server reads: a mod, or the image, must have put them there."""
        targets = [mount.target.rstrip("/") + "/" for mount in self.launch.mounts]
        for item in self.left:
            is_file = item.name in FILE_FLAGS and len(item.values) == 1 and re.search(r"/|\.\w+$", item.values[0])
            if is_file and not any(item.values[0].startswith(target) for target in targets):
                whose = "a mod may put it there" if self.launch.is_patched else "nothing mounts it"
                why = f"the server must find this file in the image ({whose}): without it it does not start, or not so"
                self.extra.append(Note(fate=Fate.PERSON, what=shown_item(item), where=_place(item), why=why))
        for item in [i for i in self.left if i.name == "--config" and len(i.values) == 1]:
            why = "more flags stand in this file, which is not read from here: write them under `flags`"
            self.extra.append(Note(fate=Fate.PERSON, what=shown_item(item), where=_place(item), why=why))

    def _model(self) -> None:
        found = model_of(self.launch, self.left, self._matched, self._refuses_model)
        if found.model is not None:
            self.document["model"] = found.model
        self.take(found.items, found.fate, found.why)
        self.extra += found.notes

    def _matched(self, addition: Mapping[str, Json], path: str) -> tuple[Item, ...]:
        return self._inverse().matched({**self.base, **addition}, path, self.left)

    def _refuses_model(self, model: Json) -> bool:
        problems = self.engine.problems(build_profile({**self.base, "model": model}))
        return any(path.startswith("model") for path, _ in problems)

    def _inverse(self) -> Inverse:
        return Inverse(engine=self.engine, catalogue=self.catalogue, base=self.base)

    def _once_only(self) -> None:
        """Where the server listens and under which name."""
        self._single("--port", "port", lambda text: int(text) if text.isdecimal() and 0 < int(text) < 65536 else None)
        for name in ("--served-model-name", "--alias"):
            self._single(
                name, "served_name", lambda text: text if text and not any(c.isspace() for c in text) else None
            )

    def _single(self, flag: str, key: str, read: Callable[[str], Json]) -> None:
        given = [item for item in self.left if item.name == flag and id(item) not in self.verbatim]
        if len(given) != 1 or len(given[0].values) != 1 or (value := read(given[0].values[0])) is None:
            return
        probe = {"model": "zqx/zqx", key: value}
        if found := self._matched(probe, key):
            self.document[key] = value
            self.take(found, Fate.KEPT, key)

    def _task(self) -> None:
        """A server that generates nothing is waited for and gated otherwise."""
        found = next((task for item in self.items if (task := task_of(item)) is not None), None)
        if found is not None:
            self.document["task"] = found[0]
            why = f"task: {found[0]}: readiness and gates follow it"
            self.extra.append(Note(fate=Fate.TRANSLATED, what=shown_item(found[1]), where=_place(found[1]), why=why))

    def _span(self) -> Span:
        span = span_of(self.launch, self.engine.name, self.left)
        if span.nodes == 2:
            self.document["nodes"] = 2
        return span

    def _spread(self, span: Span) -> None:
        """Rendezvous flags: gate0's two ranks bring their own."""
        if span.nodes != 2:
            return
        self.take(span.rendezvous, Fate.DROPPED, "`nodes: 2`: gate0 starts both ranks and introduces them itself")

    def _settings(self) -> None:
        once = [item for item in self.left if self._count(item) == 1 and id(item) not in self.verbatim]
        values: Document = {}
        for key, value, found in self._inverse().settings(once):
            self._serve(key, value)
            self.where_serve[key] = found
            values[key] = value
            self.take(found, Fate.TRANSLATED, f"serve.{key}{worked_out(value, found, values.get('max_num_seqs'))}")

    def _count(self, item: Item) -> int:
        return sum(other.name == item.name for other in self.items)

    def _serve(self, key: str, value: Json) -> None:
        known = self.document.get("serve")
        self.document["serve"] = {**(known if isinstance(known, Mapping) else {}), key: value}

    def _flag(self, key: str, value: Json) -> None:
        known = self.document.get("flags")
        self.document["flags"] = {**(known if isinstance(known, Mapping) else {}), key: value}

    def _added(self) -> None:
        """What gate0 puts on the command line anyway."""
        hosts = [item for item in self.left if item.name == "--host"]
        for expose in ("network", "loopback"):
            document = {**self.document, **({"expose": expose} if expose != "network" else {})}
            for words, reason in self._own_words(document):
                wanted = read_items(self.engine.name, self.catalogue, words)
                found = take_equal(wanted, self.left)
                if not found or any(self._count(item) > 1 for item in found):
                    continue
                is_host = any(item in hosts for item in found)
                if expose == "loopback":
                    if is_host:
                        self.document["expose"] = expose
                        self.take(found, Fate.TRANSLATED, "expose: loopback")
                    continue
                self.take(found, Fate.DROPPED, f"gate0 adds it: {reason}")

    def _own_words(self, document: Document) -> tuple[tuple[tuple[str, ...], str], ...]:
        profile = build_profile({"model": "zqx/zqx", **document})
        if self.engine.problems(profile):
            return ()
        added = self.engine.command(profile, Placement(nodes=profile.nodes)).added
        return tuple((item.words, item.reason) for item in added)

    def _flags(self) -> None:
        """The engine's own flags by name; what cannot be named goes to the end, word for word."""
        for item in list(self.left):
            if self._count(item) > 1:
                self._repeated(item)
                continue
            entry = keyed(item, self.recipe.parser, self.catalogue, self.engine.name)
            if entry is None or id(item) in self.verbatim:
                self._last(item)
                continue
            self._flag(*entry)
            self.take([item], *self._fate_of(item, f"flags.{entry[0]}"))

    def _repeated(self, item: Item) -> None:
        same = [other for other in self.items if other.name == item.name and other is not item]
        if item.name != STRAY and any(id(o) not in self.said and o.meaning == item.meaning for o in same):
            self.take([item], Fate.DROPPED, "written twice with the same value")
            if all(id(other) in self.said for other in same if other.meaning != item.meaning):
                self.items.remove(item)
            return
        self._last(item)

    def _last(self, item: Item) -> None:
        if item.name == STRAY and not any(item.words):
            self.take([item], Fate.DROPPED, "an empty word: what a shell's variable came to")
            return
        known = self.document.get("args")
        self.document["args"] = [*(known if isinstance(known, Sequence) else ()), *item.words]
        if item.name == STRAY:
            self.take([item], Fate.PERSON, f"args: belongs to no flag, {self.engine.name} may refuse it")
            return
        self.take([item], *self._fate_of(item, "args, word for word"))

    def _fate_of(self, item: Item, place: str) -> tuple[Fate, str]:
        if item.is_known or item.name == STRAY:
            return Fate.KEPT, place
        elsewhere = whereabouts(self.catalogue, item.name)
        told = f"{self.engine.name} {self.catalogue.version} has no such flag" + (f": {elsewhere}" if elsewhere else "")
        if not self._is_patched():
            return Fate.PERSON, f"{place}: {told}{';' if elsewhere else ', and'} the image is the engine's own"
        self._allow(item.name.lstrip("-"))
        who = "a patched image" if self.base.get("image") else "another build"
        return Fate.PERSON, f"{place}: {told}; allowed, as {who} may know it"

    def _is_patched(self) -> bool:
        name = split_image(str(self.base.get("image") or ""))[0]
        return self.launch.is_patched or "/".join(name.split("/")[-2:]) not in OFFICIAL

    def _allow(self, name: str) -> None:
        known = self.document.get("allow_unknown_flags")
        names = list(known) if isinstance(known, Sequence) else []
        self.document["allow_unknown_flags"] = [*names, *([] if name in names else [name])]

    def _agree(self) -> None:
        """Take back what the engine says is told twice: then its own flags alone say it."""
        for _ in range(len(self.where_serve)):
            problems = self.engine.problems(build_profile({"model": "zqx/zqx", **self.document}))
            wrong = [key for key in self.where_serve if any(f"serve.{key}" in f"{p} {m}" for p, m in problems)]
            if not wrong:
                return
            self._take_back(wrong[0])

    def _take_back(self, key: str) -> None:
        serve = self.document["serve"]
        self.document["serve"] = {k: v for k, v in serve.items() if k != key} if isinstance(serve, Mapping) else {}
        items = self.where_serve.pop(key)
        for item in items:
            self.said.pop(id(item), None)
            self.left.append(item)
        self._flags()

    def _done(self, span: Span) -> Draft:
        self.extra += self._unserved_problems()
        model = self.document.get("model")
        name = profile_name(self.launch, model_text(model))
        settings = container(self.launch, self.entrypoint)
        env = variables(self.launch)
        self._secrets_in(env.document)
        title = profile_title(self.launch, name)
        self.document |= {
            "name": name,
            **({"title": title} if title else {}),
            **({"note": masked(hidden(self.launch.note), self.secrets)} if self.launch.note else {}),
            **({"env": env.document} if env.document else {}),
            **({"container": settings.document} if settings.document and "image" in self.document else {}),
        }
        words = tuple(self.said[id(item)] for item in self.items if id(item) in self.said)
        said = (*words, *self.notes, *self.withheld.notes)
        answered = {(note.where, note.what) for note in said if note.fate is not Fate.KEPT}
        read = [n for n in self.launch.notes if not (n.why.startswith(WAITS) and (n.where, n.what) in answered)]
        notes = in_order((*self.notes, *words, *self.extra, *span.notes, *settings.notes, *env.notes, *read))
        return Draft(
            document={key: self.document[key] for key in ORDER if key in self.document and self.document[key] != {}},
            notes=say(notes, self.secrets),
        )

    def _secrets_in(self, env: Document) -> None:
        """A flag's secret is one of the variables, and the engine's own variable for its key is `serve.api_key`."""
        self.extra += refer(env, self.secrets)
        for variable, name in self.withheld.env.items():
            env[variable] = {"secret": name}
        key = key_in(env, self.recipe.api_key_env, self.withheld.api_key)
        if key.reference is not None:
            self._serve("api_key", key.reference)
        self.extra += key.notes

    def _unserved_problems(self) -> list[Note]:
        problems = self.engine.problems(build_profile(self.document))
        return [Note(fate=Fate.PERSON, what=path, where="the profile", why=message) for path, message in problems]


def _before_strays(items: Sequence[Item]) -> frozenset[int]:
    """Flags with a word behind them that nothing takes: they stay together, so that both are seen for what they are."""
    pairs = pairwise(items)
    return frozenset(id(one) for one, after in pairs if after.name == STRAY and any(after.words) and one.name != MODEL)


def _place(item: Item) -> str:
    return item.place or "the command"
