"""Each export is read the way its own tool reads it, and says the very words of the server."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.deploy.launch import docker_run_argv
from orchestrator.deploy.runtime import ServerSpec
from orchestrator.errors import InputError
from orchestrator.foreign.exporting import compose, docker_run, k8s, sparkrun, systemd
from orchestrator.foreign.exporting.common import MEASURING, Rank
from orchestrator.foreign.exporting.forms import FORMS, find_form
from orchestrator.profile.model import Profile, PullPolicy, SecretRef
from orchestrator.values import Secret
from tests.unit.export_cases import ALL, AS_PROCESS, ENGINES, IN_DOCKER, PROFILES, load, name_of, subject

HOME = "/home/somebody"
in_docker = pytest.mark.parametrize("profile", IN_DOCKER, ids=name_of)


def at_home(spec: ServerSpec, home: str) -> ServerSpec:
    mounts = (dataclasses.replace(m, source=re.sub(r"^~(?=/|$)", home, m.source)) for m in spec.mounts)
    return dataclasses.replace(spec, mounts=tuple(mounts))


def docker_words(profile: Profile, rank: Rank, home: str = HOME) -> list[str]:
    """`docker run` as the launch module has it; Docker's own default for restarts left out, the pull policy put in."""
    words = list(docker_run_argv(at_home(rank.spec, home)))
    at = words.index("--restart")
    pull = [] if profile.pull is PullPolicy.MISSING else ["--pull", profile.pull.value]
    return [*words[:at], *(words[at : at + 2] if rank.spec.restart != "no" else ()), *pull, *words[at + 2 :]]


def bash(script: str) -> list[list[str]]:
    """What bash hands to each `docker` of the script."""
    stub = "docker() { printf '%s\\0' docker \"$@\"; printf '\\0\\0'; }\n"
    env = {"HOME": HOME, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-eu"], input=stub + script, text=True, capture_output=True, check=True, env=env)
    return [call.split("\0") for call in done.stdout.split("\0\0\0") if call]


@in_docker
def test_bash_hands_docker_the_words_of_the_server(profile: Profile) -> None:
    made = subject(profile)

    calls = bash(docker_run.export(made).files[0].text)

    assert calls == [docker_words(profile, rank) for rank in made.ranks]


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Compose's own rule: `$$` is one `$`, `${NAME:?message}` and `${NAME}` are the variable."""
    pattern = re.compile(r"\$(?:(\$)|\{(\w+)(?::\?[^}]*)?\}|(.))")

    def value(found: re.Match[str]) -> str:
        assert found[3] is None, f"a stray $ in {text}"
        return "$" if found[1] else variables[found[2]]

    return str(pattern.sub(value, text))


def plain(spec: ServerSpec) -> dict[str, str]:
    """The server's variables; a secret's value is its name between asterisks."""
    return {name: f"*{v.name}*" if isinstance(v, Secret) else v for name, v in spec.env.items()}


@in_docker
def test_a_compose_file_says_the_server(profile: Profile) -> None:
    made = subject(profile)
    exported = compose.export(made)

    assert len(exported.files) == len(made.ranks)
    for rank, file in zip(made.ranks, exported.files, strict=True):
        spec = at_home(rank.spec, HOME)
        secrets = {v.name: f"*{v.name}*" for v in spec.env.values() if isinstance(v, Secret)}
        whole = yaml.safe_load(file.text)
        (service,) = whole["services"].values()
        words = [interpolated(word, {}) for word in service["command"]]
        env = {name: interpolated(v, secrets) for name, v in service.get("environment", {}).items()}
        said = {
            "image": interpolated(service["image"], {}),
            "name": service["container_name"],
            "entrypoint": service.get("entrypoint"),
            "words": words,
            "env": env,
            "mounts": [interpolated(v, {"HOME": HOME}) for v in service.get("volumes", [])],
            "ports": service.get("ports", []),
            "network": service.get("network_mode") or (service.get("networks") or ["bridge"])[0],
            "ipc": service.get("ipc"),
            "shm": service.get("shm_size"),
            "ulimits": service.get("ulimits", {}),
            "restart": service.get("restart", "no"),
            "gpus": "deploy" in service,
            "pull": service.get("pull_policy", "missing"),
        }

        assert said == {
            "image": spec.image,
            "name": spec.name,
            "entrypoint": None if spec.entrypoint is None else list(spec.entrypoint),
            "words": list(spec.command),
            "env": plain(spec),
            "mounts": [f"{m.source}:{m.target}" + ":ro" * m.read_only for m in spec.mounts],
            "ports": [f"{p.address}:" * bool(p.address) + f"{p.host}:{p.container}" for p in spec.ports],
            "network": spec.network,
            "ipc": spec.ipc,
            "shm": spec.shm_bytes,
            "ulimits": dict(spec.ulimits),
            "restart": spec.restart,
            "gpus": spec.gpus,
            "pull": profile.pull.value,
        }


def sparkrun_command(recipe: dict[str, Any]) -> str:
    """sparkrun's documented rule: each `{key}` by the default of that name, again until nothing changes."""
    values = {"model": recipe["model"], **recipe.get("defaults", {})}
    text, before = str(recipe["command"]).strip(), ""
    while text != before:
        before = text
        text = re.sub(r"\{(.*?)\}", lambda m: str(values.get(m[0].strip("}{"), m[0])), text)
    return text


IMAGES_PROGRAM = {"vllm": ["vllm", "serve"], "llamacpp": ["llama-server"], "sglang": [], "generic": []}


@in_docker
def test_a_recipe_says_the_words_as_sparkrun_and_bash_read_them(profile: Profile) -> None:
    made = subject(profile)
    rank = made.ranks[0]
    own = [w for w, o in zip(rank.command.argv, rank.command.origins or rank.command.argv, strict=True) if o != "nodes"]
    program = list(rank.spec.entrypoint or IMAGES_PROGRAM[profile.engine])

    recipe = yaml.safe_load(sparkrun.export(made).files[0].text)
    (words,) = bash(f"docker {sparkrun_command(recipe)}")

    words[1] = words[1].removeprefix("/app/")
    assert words == ["docker", *program, *own]
    assert (recipe["container"], recipe["recipe_version"], recipe["max_nodes"]) == (profile.image, "2", profile.nodes)
    assert recipe["executor_config"]["entrypoint"] == ""
    assert recipe.get("min_nodes", 1) == profile.nodes


@in_docker
def test_a_deployment_says_the_server(profile: Profile) -> None:
    made = subject(profile)
    exported = k8s.export(made)

    deployments = list(yaml.safe_load_all(exported.files[0].text))

    assert len(deployments) == len(made.ranks)
    for rank, deployment in zip(made.ranks, deployments, strict=True):
        spec = at_home(rank.spec, k8s.HOME)
        pod = deployment["spec"]["template"]["spec"]
        (server,) = pod["containers"]
        volumes = {v["name"]: v for v in pod.get("volumes", [])}
        mounted = {m["mountPath"]: volumes[m["name"]] for m in server.get("volumeMounts", [])}
        env = {
            v["name"]: v["value"].replace("$$", "$") if "value" in v else f"*{v['valueFrom']['secretKeyRef']['key']}*"
            for v in server.get("env", [])
        }

        assert [word.replace("$$", "$") for word in server["args"]] == list(spec.command)
        assert server.get("command") == (None if spec.entrypoint is None else list(spec.entrypoint))
        assert (server["image"], env) == (spec.image, plain(spec))
        assert pod.get("hostNetwork", False) == (spec.network == "host")
        assert pod.get("hostIPC", False) == (spec.ipc == "host")
        assert server.get("resources", {}) == ({"limits": {"nvidia.com/gpu": 1}} if spec.gpus else {})
        assert {target: _source(volume) for target, volume in mounted.items() if target != "/dev/shm"} == {
            m.target: m.source for m in spec.mounts
        }
        assert ("/dev/shm" in mounted) == (spec.shm_bytes is not None)
        assert deployment["spec"]["strategy"] == {"type": "Recreate"}


def _source(volume: dict[str, Any]) -> str:
    return str(volume["hostPath"]["path"] if "hostPath" in volume else volume["persistentVolumeClaim"]["claimName"])


def unit_words(dumped: str) -> list[str]:
    """Words of a `Command Line:` as systemd dumps it: in double quotes with C's escapes where it must."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^ ]+)', dumped)
    return [bare or re.sub(r"\\([0-7]{3}|.)", _unescaped, quoted) for quoted, bare in found]


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 8)) if found[1].isdigit() else {"n": "\n", "t": "\t"}.get(found[1], found[1])


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What systemd itself makes of all units: unit name to the words of ExecStart, `$$` already one `$`."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed")
    folder = tmp_path_factory.mktemp("units")
    binaries = folder / "bin"
    binaries.mkdir()
    for profile in ALL:
        for file in systemd.export(subject(profile)).files:
            # systemd looks for the program itself; any that is there will do for reading the words.
            program = re.compile(r"^(Exec\w+=-?)[^\s\\]+", re.MULTILINE)
            (folder / file.name).write_text(program.sub(r"\1/usr/bin/true", file.text))
    run = folder / "run"
    run.mkdir(mode=0o700)
    env = {"HOME": HOME, "XDG_RUNTIME_DIR": str(run), "SYSTEMD_LOG_LEVEL": "debug", "PATH": "/usr/bin:/bin"}
    units = sorted(str(path) for path in folder.glob("*.service"))
    command = [tool, "verify", "--user", "--man=no", *units]
    done = subprocess.run(command, text=True, capture_output=True, env=env, check=False)
    if "Failed to initialize manager" in done.stderr:
        pytest.skip("systemd-analyze cannot run here")
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[str]] = {}
    for unit, lines in re.findall(
        r"^\t-> Unit (\S+)\.service:\n(.*?)(?=^\t-> Unit|\Z)", done.stdout, re.DOTALL | re.MULTILINE
    ):
        start = re.search(r"-> ExecStart:\n\s+Command Line: (.*)", lines)
        if start:
            found[unit] = [word.replace("$$", "$") for word in unit_words(start[1])][1:]
    return found


@in_docker
def test_systemd_starts_docker_with_the_words_of_the_server(profile: Profile, started: dict[str, list[str]]) -> None:
    for rank in subject(profile).ranks:
        words = docker_words(profile, dataclasses.replace(rank, spec=dataclasses.replace(rank.spec, restart="no")))

        assert started[rank.spec.name] == ["run", "--rm", *words[3:]]


@pytest.mark.parametrize("profile", AS_PROCESS, ids=name_of)
def test_systemd_starts_a_binary_with_its_words(profile: Profile, started: dict[str, list[str]]) -> None:
    spec = subject(profile).ranks[0].spec

    assert started[spec.name] == [re.sub(r"^~/", f"{HOME}/", word) for word in spec.command]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "systemd"])
def test_a_binary_is_refused_where_only_images_start(form: str) -> None:
    with pytest.raises(InputError, match=f"no image, and {form} starts images only"):
        FORMS[form](subject(AS_PROCESS[0]))


@pytest.mark.parametrize("form", FORMS)
def test_an_address_that_somebody_else_serves_has_no_command(form: str) -> None:
    profile = Profile(name="there", engine="endpoint", attach="http://box:8000")

    with pytest.raises(InputError, match="attaches to http://box:8000"):
        FORMS[form](subject(profile))


def test_a_form_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(InputError, match="no form is named `compse`; did you mean `compose`"):
        find_form("compse")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("profile", ALL, ids=name_of)
def test_no_label_of_ownership_and_no_value_of_a_secret_leaves(form: str, profile: Profile) -> None:
    if form != "systemd" and profile in AS_PROCESS:
        return

    text = "".join(file.text for file in FORMS[form](subject(profile)).files)

    assert "dev.gate0." not in text
    assert not re.search(r"\bgate0-(?!profile:)", text)


NEEDED = {"--host", "--port", "--jinja"}


@pytest.mark.parametrize("profile", ALL, ids=name_of)
def test_what_is_left_out_as_bare_is_for_measuring_alone(profile: Profile) -> None:
    whole, bare = subject(profile).ranks[0], subject(profile, is_bare=True).ranks[0]
    added = {item.words[0] for item in whole.command.added}

    assert added <= MEASURING | NEEDED
    assert {item.words[0] for item in bare.command.added} == added - MEASURING
    left_out = [word for item in whole.command.added if item.words[0] in MEASURING for word in item.words]
    assert len(whole.command.argv) - len(bare.command.argv) == len(left_out)


UNSAID = {
    ("container.every_setting", "docker-run"): ["serve.memory_gib"],
    ("container.every_setting", "sparkrun"): [
        *("serve.memory_gib", "container.mounts", "container.ports", "pull", "expose")
    ],
    ("container.every_setting", "k8s"): [
        *("serve.memory_gib", "container.mounts", "container.mounts", "container.ulimits", "container.restart")
    ],
    ("entrypoint", "k8s"): ["container.network", "container.restart"],
    ("entrypoint", "sparkrun"): ["container.ports", "container.gpus", "pull"],
    ("two-sglang", "compose"): ["nodes"],
    ("two-sglang", "k8s"): ["nodes", "container.mounts", "nodes"],
    ("two-sglang", "sparkrun"): ["container.mounts", "nodes"],
    ("verbatim", "sparkrun"): ["engine", "container.entrypoint"],
    ("with-parent", "systemd"): ["serve.api_key"],
    ("quoting", "compose"): [],
}


@pytest.mark.parametrize(("name", "form"), UNSAID, ids=lambda part: part)
def test_what_a_form_cannot_say_is_told(name: str, form: str) -> None:
    profile = next(p for p in ALL if p.name == name)

    exported = FORMS[form](subject(profile))

    assert [item.path for item in exported.unsaid] == UNSAID[name, form]
    assert all(f"# note: {item}\n" in exported.files[0].text for item in exported.unsaid)


def test_two_hosts_get_their_own_addresses() -> None:
    from orchestrator.foreign.exporting.common import subject_of

    profile = load(PROFILES / "qwen3.8-flash-next-nvfp4-tp2-mtp3.yaml")
    made = subject_of(profile, ENGINES["vllm"], addresses=("10.0.0.1", "10.0.0.2"))

    exported = compose.export(made)

    services = [next(iter(yaml.safe_load(file.text)["services"].values())) for file in exported.files]
    assert [s["environment"]["VLLM_HOST_IP"] for s in services] == ["10.0.0.1", "10.0.0.2"]
    assert all(s["command"][s["command"].index("--master-addr") + 1] == "10.0.0.1" for s in services)
    assert [file.name for file in exported.files] == [
        *("qwen3.8-flash-next-nvfp4-tp2-mtp3-0.compose.yaml", "qwen3.8-flash-next-nvfp4-tp2-mtp3-1.compose.yaml")
    ]
    assert exported.unsaid == ()


REPORTED = """
docker run -d --name vllm --gpus all --ipc=host --network host
-v ~/.cache/huggingface:/root/.cache/huggingface -v ~/.cache/vllm:/root/.cache/vllm
-e VLLM_USE_DEEP_GEMM=0 vllm/vllm-openai:v0.31.0
unsloth/Qwen3.8-27B-NVFP4 --served-model-name qwen-local --port 8000
--gpu-memory-utilization 0.7 --max-model-len 131072 --max-num-seqs 32
--max-num-batched-tokens 8192
--enable-prefix-caching --mamba-cache-mode align --enable-prompt-tokens-details
--enable-mamba-shared-prefix-checkpoint --prefix-match-unit 16
--speculative-config '{"method":"mtp","num_speculative_tokens":1}'
--enable-auto-tool-choice --tool-call-parser qwen3_coder --reasoning-parser qwen3
"""
"""The winning configuration's line as its report prints it, tests/cases/argv/reported likewise."""


def rows(words: list[str]) -> list[tuple[str, ...]]:
    """Options with their values, sorted; the name is everyone's own."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("-") or not found or "/" in word:
            found.append([word])
        else:
            found[-1].append(word)
    return sorted(tuple(row) for row in found if row[0] != "--name")


@pytest.mark.parametrize(
    ("is_bare", "added"),
    [(False, [("--enable-per-request-metrics",), ("--host", "0.0.0.0")]), (True, [("--host", "0.0.0.0")])],
)
def test_the_reports_winner_is_exported_as_the_report_has_it(is_bare: bool, added: list[tuple[str, ...]]) -> None:
    profile = load(PROFILES / "qwen3.8-27b-nvfp4-mtp1-checkpoint.yaml")

    (ours,) = bash(docker_run.export(subject(profile, is_bare=is_bare)).files[0].text)
    (theirs,) = bash(REPORTED.replace("\n", " "))

    assert rows(ours) == sorted([*rows(theirs), *added])


def test_a_secret_keeps_its_name() -> None:
    profile = next(p for p in ALL if p.name == "quoting")

    assert profile.env["HF_TOKEN"] == SecretRef(name="MY_HUB_TOKEN")
    for form in FORMS:
        assert "MY_HUB_TOKEN" in FORMS[form](subject(profile)).files[0].text


def test_kubernetes_own_reader_sees_the_same_types(tmp_path: Path) -> None:
    if (tool := shutil.which("kubectl")) is None:
        pytest.skip("kubectl is not installed")
    texts = {f"{index}.yaml": k8s.export(subject(profile)).files[0].text for index, profile in enumerate(IN_DOCKER)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{', '.join(texts)}]\n")

    done = subprocess.run([tool, "kustomize", str(tmp_path)], text=True, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    seen = {d["metadata"]["name"]: d for d in yaml.safe_load_all(done.stdout)}
    sent = {d["metadata"]["name"]: d for text in texts.values() for d in yaml.safe_load_all(text)}
    assert seen == sent
