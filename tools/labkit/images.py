"""The lab's registry and its two images, each built from what this machine has: no image is fetched from outside.

Images are built with several layers (libraries, server, model), so that a pull shows layers, and pushed to a
registry on the bridge: the hosts pull from it as they would from Docker Hub.
"""

from __future__ import annotations

import http.client
import io
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from tools import parts
from tools.labkit.base import (
    GATEWAY,
    REGISTRY,
    TOOL_PATH,
    LabBroken,
    LabHost,
    LabPaths,
    lab_processes,
    say,
    start_daemon,
    wait_until,
)
from tools.labkit.host import exec_in, find_init, inside

LLAMA_IMAGE = f"{REGISTRY}/llama-smollm2:b10434"
FAULTY_IMAGE = f"{REGISTRY}/faulty:1"
MODEL_PATH = f"/models/{parts.MODEL_FILE}"
REGISTRY_CONFIG = """\
version: 0.1
log: {{level: info}}
storage:
  filesystem: {{rootdirectory: {folder}}}
  delete: {{enabled: true}}
http: {{addr: "{address}"}}
"""
LLAMA_DOCKERFILE = """\
FROM scratch
COPY libraries/ /
COPY llama/ /opt/llama/
COPY models/ /models/
ENV LD_LIBRARY_PATH=/opt/llama PATH=/opt/llama
ENTRYPOINT ["/opt/llama/llama-server"]
"""
FAULTY_DOCKERFILE = """\
FROM scratch
COPY root/ /
ENV PATH=/bin
ENTRYPOINT ["/bin/sh"]
"""
APPLETS = ("sh", "cat", "echo", "env", "false", "head", "httpd", "kill", "ls", "nc", "ps", "sleep", "true", "yes")


def ensure_registry(paths: LabPaths) -> None:
    """Make the registry answer on the bridge's address."""
    if registry_answers():
        return
    folder = paths.state / "registry"
    (folder / "storage").mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    config.write_text(REGISTRY_CONFIG.format(folder=folder / "storage", address=REGISTRY))
    say(f"starting the registry on {REGISTRY}")
    log = folder / "registry.log"
    start_daemon(["docker-registry", "serve", str(config)], paths=paths, role="registry", log=log)
    wait_until(registry_answers, "the registry does not answer", deadline_s=20, log=log)


def registry_answers() -> bool:
    """Say whether a registry answers there."""
    return _registry_status("/v2/") == 200


def registry_processes(paths: LabPaths) -> tuple[int, ...]:
    """List the registry's processes."""
    return tuple(one.pid for one in lab_processes() if one.state == str(paths.state) and one.role == "registry")


def ensure_image(image: str, paths: LabPaths, *, pulled_on: Iterable[str]) -> None:
    """Have the image in the registry and on the hosts named; elsewhere it is left as it is."""
    builder = paths.hosts[0]
    if not _is_in_registry(image):
        _build(image, builder, paths)
        _docker(builder, paths, ["push", "-q", image], deadline_s=300)
        if builder.name not in set(pulled_on):
            _docker(builder, paths, ["rmi", image], deadline_s=60)
    for host in paths.hosts:
        if host.name in set(pulled_on) and not has_image(image, host, paths):
            say(f"pulling {image} on {host.name}")
            _docker(host, paths, ["pull", "-q", image], deadline_s=300)


def has_image(image: str, host: LabHost, paths: LabPaths) -> bool:
    """Say whether the host has the image."""
    return exec_in(host, paths, ["docker", "image", "inspect", image], deadline_s=20).returncode == 0


def _docker(host: LabHost, paths: LabPaths, argv: list[str], *, deadline_s: float) -> None:
    done = exec_in(host, paths, ["docker", *argv], deadline_s=deadline_s)
    if done.returncode:
        raise LabBroken(f"`docker {' '.join(argv)}` on {host.name}: {done.stderr.strip()[-800:]}")


def _registry_status(path: str) -> int | None:
    connection = http.client.HTTPConnection(GATEWAY, int(REGISTRY.partition(":")[2]), timeout=3)
    try:
        accept = "application/vnd.docker.distribution.manifest.v2+json"
        connection.request("GET", path, headers={"Accept": accept})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _is_in_registry(image: str) -> bool:
    name, _, tag = image.removeprefix(f"{REGISTRY}/").partition(":")
    return _registry_status(f"/v2/{name}/manifests/{tag}") == 200


def _build(image: str, host: LabHost, paths: LabPaths) -> None:
    """Stream a build context into the host's engine. The classic builder needs neither network nor buildx."""
    say(f"building image {image}")
    init_pid = find_init(host, paths)
    if init_pid is None:
        raise LabBroken(f"{host.name} is down")
    argv = [*inside(init_pid), "docker", "build", "--network=none", "-q", "-t", image, "-"]
    log = paths.state / "build.log"
    with log.open("wb") as output:
        build = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={"PATH": TOOL_PATH, "DOCKER_BUILDKIT": "0", "HOME": "/root"},
        )
        with build:
            assert build.stdin is not None
            try:
                _write_context(image, build.stdin, paths)
                build.stdin.close()
                code = build.wait(timeout=300)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                build.kill()
                code = build.wait()
    if code:
        raise LabBroken(f"building {image} failed ({code}): {log.read_text(errors='replace').strip()[-800:]}")


def _write_context(image: str, stream: IO[bytes], paths: LabPaths) -> None:
    with tarfile.open(fileobj=stream, mode="w|") as context:
        if image == LLAMA_IMAGE:
            _add_text(context, "Dockerfile", LLAMA_DOCKERFILE)
            _add_llama(context, paths)
        else:
            _add_text(context, "Dockerfile", FAULTY_DOCKERFILE)
            _add_busybox(context)


def _add_llama(context: tarfile.TarFile, paths: LabPaths) -> None:
    server = parts.ensure_llama(paths.parts)
    folder = server.parent / "bin" if (server.parent / "bin" / "llama-server").exists() else None
    programs = sorted(folder.iterdir()) if folder else [server.resolve()]
    for item in programs:
        context.add(item, f"llama/{item.name}")
    _add_closure(context, "libraries", programs, beside=folder)
    model = parts.ensure_smollm2(paths.parts)
    context.add(model, f"models/{model.name}")


def _add_busybox(context: tarfile.TarFile) -> None:
    busybox = Path("/bin/busybox")
    context.add(busybox.resolve(), "root/bin/busybox")
    for applet in APPLETS:
        link = tarfile.TarInfo(f"root/bin/{applet}")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        context.addfile(link)
    _add_closure(context, "root", [busybox], beside=None)


def _add_closure(context: tarfile.TarFile, under: str, programs: Iterable[Path], *, beside: Path | None) -> None:
    """Add the shared libraries and the loader that the programs need and that do not lie beside them."""
    needed: set[str] = set()
    for program in programs:
        needed.update(_libraries_of(program, beside))
    for library in sorted(needed):
        if beside is None or not library.startswith(f"{beside}/"):
            context.add(Path(library).resolve(), f"{under}{library}")
    _add_folder(context, f"{under}/tmp", 0o1777)


def _libraries_of(program: Path, beside: Path | None) -> list[str]:
    environment = {"PATH": TOOL_PATH, "LD_LIBRARY_PATH": str(beside or "")}
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment, timeout=20, check=False)
    return re.findall(r"(?:=>\s|^\s*)(/\S+)\s\(0x", listed.stdout, re.MULTILINE)


def _add_text(context: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(text.encode())
    context.addfile(entry, io.BytesIO(text.encode()))


def _add_folder(context: tarfile.TarFile, name: str, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    context.addfile(entry)
