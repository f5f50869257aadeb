"""The options of `docker run` and `podman run`: which take a value, and what each means for a profile.

Source: `docker run --help` of Docker 28 and `podman-run(1)` of Podman 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.foreign.model import Fate
from orchestrator.foreign.shell import Word

SHORT = {
    "a": "attach",
    "c": "cpu-shares",
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "P": "publish-all",
    "q": "quiet",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
SWITCHES = frozenset(
    {
        *("detach", "disable-content-trust", "help", "init", "interactive", "no-healthcheck", "oom-kill-disable"),
        *("privileged", "publish-all", "quiet", "read-only", "rm", "sig-proxy", "tty", "use-api-socket"),
        *("replace", "rmi", "env-host", "http-proxy", "no-hosts", "no-hostname", "read-only-tmpfs", "tls-verify"),
    }
)
ALIASES = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}
USED = frozenset(
    {
        *("env", "env-file", "volume", "mount", "publish", "network", "ipc", "shm-size", "ulimit", "restart", "name"),
        *("entrypoint", "gpus", "runtime", "device"),
    }
)
"""Options that a launch has a place for."""

_SILENT = "gate0 does this itself"
FATES: Mapping[str, tuple[Fate, str]] = {
    "detach": (Fate.DROPPED, "gate0 starts every server in the background"),
    "interactive": (Fate.DROPPED, "nobody types into a server"),
    "tty": (Fate.DROPPED, "nobody types into a server"),
    "rm": (Fate.DROPPED, "gate0 removes what it started"),
    "replace": (Fate.DROPPED, "gate0 removes what it started"),
    "quiet": (Fate.DROPPED, _SILENT),
    "sig-proxy": (Fate.DROPPED, _SILENT),
    "attach": (Fate.DROPPED, _SILENT),
    "detach-keys": (Fate.DROPPED, _SILENT),
    "cidfile": (Fate.DROPPED, "gate0 finds its containers by label"),
    "label": (Fate.DROPPED, "gate0 sets its own labels; they do not change what is served"),
    "label-file": (Fate.DROPPED, "gate0 sets its own labels; they do not change what is served"),
    "annotation": (Fate.DROPPED, "does not change what is served"),
    "health-cmd": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "health-interval": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "health-retries": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "health-timeout": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "health-start-period": (Fate.DROPPED, "`ready.timeout_s` says how long a start may take"),
    "health-start-interval": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "no-healthcheck": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "pull": (Fate.DROPPED, "gate0 pulls a missing image; `pull: always` or `never` says otherwise"),
    "log-driver": (Fate.DROPPED, "gate0 reads the log from docker's default driver"),
    "log-opt": (Fate.DROPPED, "gate0 reads the log from docker's default driver"),
    "stop-signal": (Fate.DROPPED, "gate0 stops servers in its own way"),
    "stop-timeout": (Fate.DROPPED, "gate0 stops servers in its own way"),
    "init": (Fate.DROPPED, "no process to reap beside the server"),
    "hostname": (Fate.DROPPED, "does not change what is served"),
    "domainname": (Fate.DROPPED, "does not change what is served"),
    "mac-address": (Fate.DROPPED, "does not change what is served"),
    "disable-content-trust": (Fate.DROPPED, "gate0 pulls in its own way"),
    "oom-score-adj": (Fate.PERSON, "which process dies first when memory runs out: gate0 does not set it"),
    "oom-kill-disable": (Fate.PERSON, "which process dies first when memory runs out: gate0 does not set it"),
    "memory": (Fate.PERSON, "a memory limit: gate0 sets none; `memory_gib` bounds what the engine takes"),
    "memory-swap": (Fate.PERSON, "a memory limit: gate0 sets none"),
    "memory-reservation": (Fate.PERSON, "a memory limit: gate0 sets none"),
    "memory-swappiness": (Fate.PERSON, "a memory limit: gate0 sets none"),
    "privileged": (Fate.PERSON, "gate0 starts no privileged container; try without, or start it yourself and attach"),
    "cap-add": (Fate.PERSON, "gate0 adds no capability; try without, or start it yourself and attach"),
    "security-opt": (Fate.PERSON, "gate0 sets none; try without, or start it yourself and attach"),
    "user": (Fate.PERSON, "the container runs as its image says; caches may be written as another user"),
    "workdir": (Fate.PERSON, "the container starts in its image's folder: make relative paths absolute"),
    "tmpfs": (Fate.PERSON, "a file system in memory: not carried"),
    "platform": (Fate.PERSON, "gate0 takes the image for the host's own platform"),
    "device": (Fate.PERSON, "a device of the host: gate0 gives a container GPUs alone"),
    "volumes-from": (Fate.PERSON, "mounts of another container: write them out"),
    "publish-all": (Fate.PERSON, "publishes the image's ports anywhere: write `container.ports`"),
    "secret": (Fate.PERSON, "a file with a secret in the container: not carried"),
}
OTHERS = (Fate.PERSON, "has no place in a profile: try without, or start it yourself and attach")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as written: its long name without dashes, its value (None for a switch)."""

    name: str
    value: Word | None
    written: str
    line: int
    is_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """`docker run` taken apart: options, then the image (or, for `exec`, the container), then its words."""

    verb: str
    options: tuple[Option, ...]
    image: Word | None
    words: tuple[Word, ...]
    line: int


def take_apart(words: Sequence[Word]) -> RunLine:
    """Words from `docker` on, as docker's own parser reads them: options end at the first other word."""
    at = 1
    verb = ""
    while at < len(words) and verb not in {"run", "create", "exec"}:
        verb = words[at].text
        at += 1
        if verb in {"-H", "--host", "-c", "--context", "--config", "-l", "--log-level"}:
            at += 1
    options: list[Option] = []
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        if words[at].text == "--":
            at += 1
            break
        taken = _long(words, at) if words[at].text.startswith("--") else _short(words, at)
        options.extend(taken)
        takes_next = any(at + 1 < len(words) and option.value is words[at + 1] for option in taken)
        at += 2 if takes_next else 1
    image = words[at] if at < len(words) else None
    line = words[0].line if words else 1
    return RunLine(verb=verb, options=tuple(options), image=image, words=tuple(words[at + 1 :]), line=line)


def _long(words: Sequence[Word], at: int) -> tuple[Option, ...]:
    word = words[at]
    name, equals, value = word.text[2:].partition("=")
    name = ALIASES.get(name, name)
    is_known = name in USED or name in FATES or name in _VALUED or name in SWITCHES
    if equals:
        held = _tail(word, value)
        return (Option(name=name, value=held, written=word.text, line=word.line, is_known=is_known),)
    if name in SWITCHES or (not is_known and _is_switch(words, at)) or at + 1 >= len(words):
        return (Option(name=name, value=None, written=word.text, line=word.line, is_known=is_known),)
    after = words[at + 1]
    return (Option(name=name, value=after, written=f"{word.text} {after.text}", line=word.line, is_known=is_known),)


def _short(words: Sequence[Word], at: int) -> tuple[Option, ...]:
    word = words[at]
    found: list[Option] = []
    letters = word.text[1:]
    for index, letter in enumerate(letters):
        name = SHORT.get(letter, letter)
        if name in SWITCHES or letter not in SHORT:
            is_known = letter in SHORT
            found.append(Option(name=name, value=None, written=f"-{letter}", line=word.line, is_known=is_known))
            continue
        rest = letters[index + 1 :].removeprefix("=")
        if rest:
            held = _tail(word, rest)
            found.append(Option(name=name, value=held, written=f"-{letter}{rest}", line=word.line))
        elif at + 1 < len(words):
            after = words[at + 1]
            found.append(Option(name=name, value=after, written=f"-{letter} {after.text}", line=word.line))
        break
    return tuple(found)


def _tail(word: Word, text: str) -> Word:
    return Word(text=text, line=word.line, missing=word.missing, code=word.code)


def _is_switch(words: Sequence[Word], at: int) -> bool:
    """Whether an option that nobody knows is followed by another one or by what looks like the image."""
    after = words[at + 1].text if at + 1 < len(words) else "-"
    return after.startswith("-") or ("/" in after and "=" not in after and not after.startswith(("/", ".", "~")))


_VALUED = frozenset(
    {
        *("add-host", "blkio-weight", "blkio-weight-device", "cap-drop", "cgroup-parent", "cgroupns", "cpu-count"),
        *("cpu-percent", "cpu-period", "cpu-quota", "cpu-rt-period", "cpu-rt-runtime", "cpu-shares", "cpus"),
        *("cpuset-cpus", "cpuset-mems", "device-cgroup-rule", "device-read-bps", "device-read-iops"),
        *("device-write-bps", "device-write-iops", "dns", "dns-option", "dns-search", "expose", "group-add"),
        *("io-maxbandwidth", "io-maxiops", "ip", "ip6", "isolation", "kernel-memory", "link", "link-local-ip"),
        *("network-alias", "pid", "pids-limit", "storage-opt", "sysctl", "userns", "uts", "volume-driver"),
        *("hooks-dir", "tz", "pod", "systemd", "sdnotify", "requires", "secret", "subuidname", "subgidname"),
    }
)
