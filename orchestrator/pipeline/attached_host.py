"""The host behind an attached server, for evidence only: its facts, telemetry, and the container that serves there.

Nothing is locked, started or stopped on it. What cannot be looked at is a note, never the end of a road.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from orchestrator.deploy.runtime import LABEL_PORT, Runtime, Server
from orchestrator.errors import Gate0Error
from orchestrator.pipeline.preparing import host_json
from orchestrator.pipeline.road import Rank, Road
from orchestrator.pipeline.start_log import LOG_LINES, mask

SCHEMES = {"http": 80, "https": 443}
USUAL_PORTS = {"vllm": 8000, "sglang": 30000, "llama": 8080}
"""Where an engine listens that was told no port, by a word of its image or command."""

_PORT = re.compile(r"--?(?:port|p)(?:=(\d+))?")


def look_at_host(road: Road) -> str:
    """Facts of the host, and the container behind the address; returns what it found in words.

    Raises:
        HostError: The host does not answer: it was named, so that is the user's to know.
    """
    box = road.job.evidence
    assert box is not None
    facts = road.tools.read_facts(box.host)
    runtime = road.tools.open_runtime(road.job.profile, box.host)
    rank = Rank(index=0, box=box, runtime=runtime, facts=facts)
    road.ranks.append(rank)
    road.save(hosts=({**host_json(rank), "role": "evidence"},))
    try:
        rank.server, words = _find(road, runtime)
    except Gate0Error as exc:
        road.note(f"{rank.name}: its containers cannot be looked at: {exc.message}", is_warning=True)
        return f"facts of {rank.name}, no container"
    if rank.server is None:
        road.note(f"{rank.name}: {words}: its log and image are not at hand", is_warning=True)
        return f"facts of {rank.name}, no container"
    road.image_digest = rank.server.image_digest
    road.save(image=rank.server.image, image_digest=road.image_digest, runtime="docker")
    return f"container {rank.server.name} on {rank.name}, image {rank.server.image}"


def save_log(road: Road) -> None:
    """What the container said last, credentials masked; of one that was not found there is nothing."""
    for rank in road.ranks:
        if rank.server is not None:
            lines = rank.runtime.log_tail(rank.server.id, LOG_LINES)
            road.writer.write_text(f"container-{rank.index}.log", "\n".join(mask(line) for line in lines) + "\n")


def close_runtimes(road: Road) -> None:
    """Give the connections back."""
    for rank in road.ranks:
        rank.runtime.close()


def serving_on(servers: Sequence[Server], port: int) -> tuple[Server, ...]:
    """Those that answer on the port: published, by gate0's own label, or on the host's network by their own words."""
    published = tuple(s for s in servers if port in s.ports or s.labels.get(LABEL_PORT) == str(port))
    return published or tuple(s for s in servers if s.has_host_network and port in _ports_in(s))


def _find(road: Road, runtime: Runtime) -> tuple[Server | None, str]:
    profile = road.job.profile
    if profile.attach_container is not None:
        named = runtime.find(name=profile.attach_container)
        return (named[0], "") if named else (None, f"no container is named {profile.attach_container}")
    url = urlsplit(profile.attach or "")
    port = url.port or SCHEMES.get(url.scheme, 80)
    listed = (*runtime.find(label=(LABEL_PORT, str(port))), *runtime.foreign())
    whole = [server for s in listed if s.is_running and (server := runtime.get(s.id)) is not None]
    found = serving_on(whole, port)
    if len(found) == 1:
        return found[0], ""
    names = ", ".join(s.name for s in found)
    hint = "name it: `attach_container` in the profile, or `--container NAME`"
    return None, f"{names} may all serve port {port} ({hint})" if found else f"no container serves port {port} ({hint})"


def _ports_in(server: Server) -> Iterator[int]:
    words = server.command
    told = False
    for place, word in enumerate(words):
        match = _PORT.fullmatch(word)
        value = match.group(1) or (words[place + 1] if place + 1 < len(words) else "") if match else ""
        if value.isdigit():
            told = True
            yield int(value)
    if not told:
        text = " ".join((server.image, *words)).lower()
        yield from (port for word, port in USUAL_PORTS.items() if word in text)
