"""An image's own flag list, read from a real image by real Docker Engines, and held against a profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.deploy.docker import DockerRuntime
from orchestrator.deploy.own_flags import Subject
from orchestrator.deploy.seen_files import look_in_image
from orchestrator.fleet.hosts_file import LazySshConfig, open_host, read_inventory
from orchestrator.fleet.inventory import resolve_host
from orchestrator.profile.model import PullPolicy
from tests.lab.command import Workplace
from tests.lab.running import RunningLab
from tests.lab.test_lab_road import quick


@pytest.fixture
def place(tmp_path: Path, lab: RunningLab) -> Iterator[Workplace]:
    yield Workplace(tmp_path, lab)
    for host in lab.host_names:
        lab.assert_clean(host)


def kept(place: Workplace) -> list[Path]:
    return sorted((place.folder / "home" / ".cache" / "gate0" / "flags").glob("*"))


def test_both_hosts_read_the_list_of_the_image_and_a_kept_one_starts_nothing(place: Workplace, lab: RunningLab) -> None:
    host, other = lab.host_names
    found = place.on_hosts("flags", lab.llama_image, "--json", on=host)
    (file,) = kept(place)
    first = file.read_bytes()
    again = place.on_hosts("flags", lab.llama_image, "ctx-size", on=host)
    is_as_it_was = file.read_bytes() == first
    file.unlink()
    elsewhere = place.on_hosts("flags", lab.llama_image, "--json", on=other)

    document = json.loads(found.out)
    assert (found.code, again.code, elsewhere.code) == (0, 0, 0), found.err + again.err + elsewhere.err
    assert is_as_it_was
    assert document["is_own"]
    assert len(document["flags"]) > 200
    assert document["flags"]["--ctx-size"]["kind"] == "int"
    assert document["flags"] == json.loads(elsewhere.out)["flags"]
    assert again.out.splitlines()[0].startswith("--ctx-size  this image (llama-server ")
    assert [path.name.split("-")[:2] for path in kept(place)] == [["llamacpp", "sha256"]]


def test_a_flag_that_the_image_lacks_is_refused_by_file_and_line_before_the_start(
    place: Workplace, lab: RunningLab
) -> None:
    """`--lazy-mode` came after the lab's build; the newest shipped list, taken for want of a version, has it."""
    profile = place.folder / quick(place)
    profile.write_text(profile.read_text() + "flags:\n  lazy-mode: auto\n")

    ended = place.on_hosts("run", "profiles/smol.yaml")

    line = profile.read_text().splitlines().index("  lazy-mode: auto") + 1
    (run,) = place.runs()
    assert ended.code == 2, ended.err
    assert (
        f"profiles/smol.yaml:{line}: flags.lazy-mode: --lazy-mode is no flag of this image (llama-server" in ended.err
    )
    stages = run["stages"]
    assert isinstance(stages, list)
    assert [stage["name"] for stage in stages] == ["preflight", "pull", "collect"]
    assert lab.containers(lab.host_names[0]) == ()


def test_a_mounted_chat_template_is_looked_for_on_the_host(place: Workplace, lab: RunningLab) -> None:
    """Over SSH, before anything is started. The lab's image has no shell: what must be in it cannot be told."""
    host = lab.host_names[0]
    profile = place.folder / quick(place)
    text = profile.read_text()

    def deployed(template: str) -> str:
        serve = f"serve: {{chat_template: {template}, "
        mounts = "container: {mounts: [/srv/templates:/templates]}\n"
        profile.write_text(text.replace("serve: {", serve) + mounts)
        return place.on_hosts("deploy", "profiles/smol.yaml").err

    lab.exec(host, "sh", "-c", "mkdir -p /srv/templates && echo '{{ messages }}' > /srv/templates/mine.jinja")
    mounted, inside = deployed("/templates/mime.jinja"), deployed("/nowhere/x.jinja")
    lab.exec(host, "rm", "-r", "/srv/templates")

    line = next(n for n, one in enumerate(text.splitlines(), 1) if one.startswith("serve: {"))
    found = f"--chat-template-file: {host} has no file /srv/templates/mime.jinja; did you mean mine.jinja?"
    assert f"profiles/smol.yaml:{line}: serve.chat_template: {found}" in mounted
    assert f"whether {lab.llama_image} has /nowhere/x.jinja cannot be told: " in inside
    assert "llama-server refuses --chat-template-file: failed to open file '/nowhere/x.jinja'" in inside
    assert lab.containers(host) == ()


def test_an_image_with_a_shell_tells_of_its_files_once(tmp_path: Path, lab: RunningLab) -> None:
    name = lab.host_names[0]
    host = open_host(resolve_host(name, read_inventory(lab.hosts_yaml), LazySshConfig()))
    runtime = DockerRuntime(host)
    digest = runtime.pull(lab.faulty_image, PullPolicy.MISSING, lambda _: None)
    subject = Subject(engine="llamacpp", image=lab.faulty_image, digest=digest)
    paths = ("/bin/sh", "/bin", "gone.jinja", "/no/such/x.jinja")
    try:
        found = look_in_image(runtime, subject, paths, folder=tmp_path)
        again = look_in_image(runtime, replace(subject, image="no/such:image"), paths, folder=tmp_path)
    finally:
        runtime.close()
        host.close()

    assert [one.state.value for one in found.values()] == ["file", "folder", "absent", "absent"]
    assert found["gone.jinja"].whole == "/gone.jinja"
    assert again == found
    lab.assert_clean(name)
