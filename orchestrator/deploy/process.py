"""Servers as plain processes on a host, local or over ssh: for native builds, and where there is no Docker.

Theory of operation. A small supervisor shell, in a session of its own so that it outlives the connection, starts the
server in another session, waits for it and writes down how it ended. All state is in one folder a server on the host
(see `scripts`), so any gate0 from any machine sees the same servers; the labels in it are the ownership.
Linux only: /proc is what makes a pid trustworthy.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.deploy import scripts
from orchestrator.deploy.lines import LineSplitter, split_log
from orchestrator.deploy.listing import ListedProcess, listening_ports, read_listing
from orchestrator.deploy.runtime import (
    LABEL_PORT,
    LABEL_RUN,
    PYTHON,
    IsCancelled,
    OnPull,
    PullProgress,
    Question,
    RuntimeFacts,
    Server,
    ServerSpec,
    never,
)
from orchestrator.deploy.watched import OverError, WatchedStream
from orchestrator.errors import ImageMissing, Interrupted, NameTaken, PortTaken, RuntimeFailure, RuntimeUnavailable
from orchestrator.fleet.host import Completed, Host
from orchestrator.fleet.outcome import timed_out
from orchestrator.profile.model import PullPolicy
from orchestrator.values import Clock, Json, Secret

DEFAULT_FOLDER = "~/.cache/gate0/servers"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binary:
    path: str
    sha256: str

    @property
    def digest(self) -> str:
        return f"file:sha256:{self.sha256}"


class ProcessRuntime:
    """A `Runtime` of detached processes. An image is a binary: a name on the host's PATH, or a path.

    A word of the command that starts with `~/` means the home on the host. Mounts, network, ipc, ulimits and the
    restart policy are Docker's and have no meaning here. The digest is of the file that is started: of a Python
    engine, that is its start script.

    Args:
        folder: Where the servers' folders are on the host.
        new_token: Tells two servers of the same name apart.
    """

    def __init__(
        self,
        host: Host,
        *,
        folder: str = DEFAULT_FOLDER,
        clock: Clock = time.monotonic,
        new_token: Callable[[], str] = lambda: uuid.uuid4().hex[:12],
    ) -> None:
        self._host = host
        self._folder = folder
        self._clock = clock
        self._new_token = new_token
        self._kept_home: str | None = None

    def facts(self) -> RuntimeFacts:
        """See `Runtime.facts`. `has_gpu`: an NVIDIA driver answers.

        Raises:
            RuntimeUnavailable: The host is no Linux.
        """
        system = self._host.run(("uname", "-sr"))
        if not system.stdout.startswith("Linux"):
            raise RuntimeUnavailable(
                f"{self._host.name}: the process runtime needs Linux, the host says `{system.stdout.strip()}`",
                hint="use `runtime: docker`, or start the server yourself and attach to its URL",
            )
        return RuntimeFacts(
            kind="process", version=system.stdout.strip(), has_gpu=self._host.run(("nvidia-smi", "-L")).is_ok
        )

    def image_digest(self, image: str) -> str | None:
        """`file:sha256:…` of the binary, None when it is not there or cannot be executed."""
        binary = self._find_binary(image)
        return binary.digest if binary else None

    def pull(self, image: str, policy: PullPolicy, on_progress: OnPull) -> str:
        """Check that the binary is there: nothing is ever downloaded."""
        digest = self._get_binary(image).digest
        on_progress(PullProgress(done_bytes=0, total_bytes=0, layers_done=1, layers=1, status="already on the host"))
        return digest

    def find(self, *, label: tuple[str, str] | None = None, name: str | None = None) -> tuple[Server, ...]:
        """See `Runtime.find`."""
        key, value = label or (LABEL_RUN, "")
        return tuple(
            server
            for server in self._servers()
            if name in (None, server.name) and key in server.labels and value in ("", server.labels[key])
        )

    def foreign(self) -> tuple[Server, ...]:
        """None: what else runs on the host is in its facts."""
        return ()

    def start(self, spec: ServerSpec) -> Server:
        """See `Runtime.start`. The port of the `dev.gate0.port` label is looked at before anything is started."""
        self._check(spec)
        binary = self._get_binary(spec.image)
        words = (binary.path, *spec.command) if spec.entrypoint is None else (*spec.entrypoint, *spec.command)
        self._check_port(spec)
        state: Json = {
            "token": self._new_token(),
            "image": spec.image,
            "digest": binary.digest,
            "labels": dict(spec.labels),
            "command": list(words),
        }
        started = self._host.run(
            (
                *("sh", "-c", scripts.START, "sh", self._root(), spec.name, json.dumps(state), scripts.SUPERVISE),
                *(self._at_home(word) for word in words),
            ),
            stdin=_env_file(spec.env),
        )
        if not started.is_ok:
            raise self._start_failed(spec, started)
        return next(server for server in self._servers() if server.name == spec.name)

    def ask(self, question: Question, *, is_cancelled: IsCancelled = never) -> Completed:
        """See `Runtime.ask`: a process that goes with its connection. Of stderr the last 4000 bytes are kept."""
        end_s = self._clock() + question.timeout_s
        program = self._get_binary(question.image).path
        kind = "python" if question.entrypoint == PYTHON else "program"
        argv = (program, *question.words)
        if question.entrypoint not in (None, PYTHON):
            argv = (*(question.entrypoint or ()), *question.words)
        limit = str(math.ceil(question.timeout_s) + 5)  # ours comes first, that one is for a connection that hangs
        stream = WatchedStream(
            self._host.open_stream(("sh", "-c", scripts.ASK, "sh", limit, kind, *argv)),
            lambda: is_cancelled() or self._clock() >= end_s,
        )
        answer = bytearray()
        try:
            while chunk := stream.recv(65536):
                answer += chunk
        except OverError:
            if is_cancelled():
                raise Interrupted("stopped on request") from None
            raise timed_out(self._host.name, argv[:1], question.timeout_s, is_killed=True) from None
        finally:
            stream.close()
        return self._answered(argv, answer.decode(errors="replace"))

    def _answered(self, argv: tuple[str, ...], answer: str) -> Completed:
        out, mark, rest = answer.rpartition(scripts.ASKED)
        code, _, err = rest.partition("\n")
        if not mark or not code.isdigit():
            raise RuntimeFailure(f"{self._host.name}: the connection broke before {argv[0]} had ended")
        return Completed(argv=argv, exit_code=int(code), stdout=out, stderr=err)

    def get(self, server_id: str) -> Server | None:
        """See `Runtime.get`."""
        return next((server for server in self._servers() if server.id == server_id), None)

    def log_tail(self, server_id: str, lines: int) -> tuple[str, ...]:
        """See `Runtime.log_tail`."""
        server = self.get(server_id)
        if server is None:
            return ()
        how_many = f"-n{lines}" if lines > 0 else "-n+1"
        log = self._host.run(("tail", how_many, "--", f"{self._root()}/{server.name}/server.log"), check=True)
        kept = split_log(log.stdout.encode())
        return kept[-lines:] if lines > 0 else kept

    def log_head(self, server_id: str, lines: int) -> tuple[str, ...]:
        """See `Runtime.log_head`."""
        server = self.get(server_id)
        if server is None:
            return ()
        log = self._host.run(("head", f"-n{lines}", "--", f"{self._root()}/{server.name}/server.log"), check=True)
        return split_log(log.stdout.encode())[:lines]

    def follow(self, server_id: str, *, timeout_s: float, is_cancelled: IsCancelled = never) -> Iterator[str]:
        """See `Runtime.follow`."""
        end_s = self._clock() + timeout_s
        listed = next((one for one in self._listed() if one.server.id == server_id), None)
        if listed is None:
            return
        log = f"{self._root()}/{listed.server.name}/server.log"
        # tail ends by itself when the supervisor is gone, with all that was written until then.
        until = ("-f", "-s", "0.2", f"--pid={listed.supervisor_pid}") if listed.server.is_running else ()
        stream = WatchedStream(
            self._host.open_stream(("tail", "-n+1", *until, "--", log)),
            lambda: is_cancelled() or self._clock() >= end_s,
        )
        splitter = LineSplitter()
        try:
            while chunk := stream.recv(65536):
                yield from splitter.feed(chunk)
        except OverError:
            pass
        finally:
            stream.close()
        yield from splitter.flush()

    def stop(self, server_id: str, *, grace_s: float = 30.0) -> None:
        """See `Runtime.stop`. The whole process group goes, workers that outlived their leader included."""
        server = self.get(server_id)
        if server is not None:
            self._end(server, grace_s)

    def remove(self, server_id: str) -> None:
        """See `Runtime.remove`; what still runs is killed."""
        server = self.get(server_id)
        if server is not None:
            self._end(server, 0.0)
            self._host.run(("rm", "-rf", "--", f"{self._root()}/{server.name}"), check=True)

    def close(self) -> None:
        """Nothing is held."""

    def _end(self, server: Server, grace_s: float) -> None:
        if not server.is_ours:
            raise RuntimeFailure(
                f"{self._host.name}: {server.name} was not started by gate0 (no {LABEL_RUN} label)",
                hint="gate0 stops and removes only what it started",
            )
        self._host.run(
            ("sh", "-c", scripts.STOP, "sh", f"{self._root()}/{server.name}", str(round(grace_s * 10))),
            timeout_s=grace_s * 2 + 30.0,
            check=True,
        )

    def _check(self, spec: ServerSpec) -> None:
        if LABEL_RUN not in spec.labels:
            raise RuntimeFailure(f"{self._host.name}: {spec.name} has no {LABEL_RUN} label: it could never be stopped")
        if not _NAME.fullmatch(spec.name):
            raise RuntimeFailure(f"{self._host.name}: `{spec.name}` is no name for a server: letters, digits, `_.-`")
        wrong = next((name for name in spec.env if not _ENV_NAME.fullmatch(name)), None)
        if wrong is not None:
            raise RuntimeFailure(f"{self._host.name}: `{wrong}` is no name for an environment variable")

    def _check_port(self, spec: ServerSpec) -> None:
        port = spec.labels.get(LABEL_PORT)
        if port is None:
            return
        sockets = self._host.run(("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null"))
        if int(port) in listening_ports(sockets.stdout):
            raise PortTaken(
                f"{self._host.name}: port {port} is taken, {spec.name} was not started",
                hint=f"see who has it with `ss -ltnp 'sport = :{port}'`, or give the profile another `port:`",
            )

    def _start_failed(self, spec: ServerSpec, started: Completed) -> RuntimeFailure:
        if started.exit_code == scripts.NAME_TAKEN:
            return NameTaken(
                f"{self._host.name}: a server named {spec.name} is there already",
                hint="`gate0 ps` shows it, `gate0 stop` ends it",
            )
        words = started.stderr.strip() or f"exit code {started.exit_code}"
        return RuntimeFailure(f"{self._host.name}: could not start {spec.name}: {words}")

    def _find_binary(self, image: str) -> _Binary | None:
        found = self._host.run(("sh", "-c", scripts.FIND_BINARY, "sh", image), timeout_s=120.0)
        if not found.is_ok:
            return None
        path, checksum = found.stdout.splitlines()[:2]
        return _Binary(path=path, sha256=checksum.split()[0])

    def _get_binary(self, image: str) -> _Binary:
        binary = self._find_binary(image)
        if binary is None:
            raise ImageMissing(
                f"{self._host.name}: no program `{image}` on the PATH, in ~/.local/bin, or at that path",
                hint="install it on the host, or give `binary:` its full path",
            )
        return binary

    def _servers(self) -> Iterator[Server]:
        return (listed.server for listed in self._listed())

    def _listed(self) -> tuple[ListedProcess, ...]:
        shown = self._host.run(("sh", "-c", scripts.LIST, "sh", self._root()), check=True)
        return read_listing(shown.stdout)

    def _root(self) -> str:
        return self._at_home(self._folder)

    def _at_home(self, word: str) -> str:
        if not word.startswith("~/"):
            return word
        if self._kept_home is None:
            self._kept_home = self._host.run(("sh", "-c", 'printf %s "$HOME"'), check=True).stdout
        return self._kept_home + word[1:]


def _env_file(env: Mapping[str, str | Secret]) -> bytes:
    clear = ((name, value.value if isinstance(value, Secret) else value) for name, value in env.items())
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in clear).encode()
