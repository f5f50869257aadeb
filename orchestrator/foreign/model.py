"""What other people's forms come down to: one server to launch, and what became of each thing that was written.

Theory of operation. A reader (`sparkrun`, `docker_run`, `compose`, …) turns its form into `Launch` values: words,
variables, container settings, each as the form says it, nothing interpreted. `translation` turns a `Launch` into a
`Draft`: a profile's document in a profile file's own words. Whatever is changed or left out on the way is a `Note`, so
that nothing disappears without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.profile.model import EnvValue, Mount, Port
from orchestrator.values import Json


class Fate(StrEnum):
    """What became of something in the source.

    KEPT: it stands in the profile with the same words. TRANSLATED: it stands there in gate0's words. DROPPED: it is not
    there, and why it need not be. PERSON: gate0 cannot decide or do it; somebody must (mods, patches, shell code).
    """

    KEPT = "kept"
    TRANSLATED = "translated"
    DROPPED = "dropped"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line of the loss report.

    Attributes:
        what: As the source has it (`--max-num-seqs 32`, `mods: [fix-x]`), secrets as `***`.
        where: Place in the source: `line 12`, `services.vllm.command[3]`, `defaults.port`.
        why: What it became, why it is gone, or what somebody has to do.
    """

    fate: Fate
    what: str
    where: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One server as a form says it.

    Attributes:
        form: `sparkrun`, `spark-vllm-docker`, `docker-run`, `compose`, `command`, `systemd`, `k8s`.
        name: What the source calls it; None: the translation makes one from the model.
        image: None: it runs without a container (a bare command line).
        entrypoint: None keeps the image's own; () clears it, which is then also what the words must carry.
        words: The command line: after the image (so that it may begin with `vllm serve`, `python3 -m …`, or with a flag
            where the image's entrypoint is the server), or the bare command. JSON is one word.
        env: None: explicitly unset. A `SecretRef` where the source takes it from the environment of whoever starts it.
        model, revision, file: Where the form names them beside the command line.
        nodes: Hosts that form one server; None: the form does not say.
        gpus: `all`, `none`, or the form's own words (`device=0`); None: it does not say.
        places: Where each word stands (`line 12`), as many as `words`; (): not known.
        where: Place of the whole in the source (`line 12`), for messages.
        engine_version: The engine's version where the form states one.
        is_patched: The image's engine is changed by something that the form names (mods, patches, build options).
        carried: The profile that gate0 itself wrote into an export (`foreign.carrying`), None elsewhere.
        notes: What the reader itself changed, left out or could not read.
    """

    form: str
    source: str
    name: str | None = None
    title: str | None = None
    note: str | None = None
    engine: str | None = None
    image: str | None = None
    entrypoint: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    model: str | None = None
    revision: str | None = None
    file: str | None = None
    network: str | None = None
    ipc: str | None = None
    shm_gib: float | None = None
    mounts: tuple[Mount, ...] = ()
    ports: tuple[Port, ...] = ()
    ulimits: Mapping[str, int] = field(default_factory=dict)
    restart: str | None = None
    gpus: str | None = None
    nodes: int | None = None
    places: tuple[str, ...] = ()
    where: str | None = None
    engine_version: str | None = None
    is_patched: bool = False
    carried: Mapping[str, Json] | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A profile's document as it will be written, and the whole loss report, in the order of the source."""

    document: Mapping[str, Json]
    notes: tuple[Note, ...] = ()
