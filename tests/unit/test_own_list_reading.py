"""An image's own flag list: what the script finds in engines of several layouts, and what the texts come to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.engines.flags import inside, live
from orchestrator.engines.flags.document import encode
from orchestrator.engines.flags.help_text import parse_argparse_help, parse_llamacpp_help
from orchestrator.engines.flags.model import Catalogue, Flag, ValueKind

CASES = Path(__file__).resolve().parents[1] / "cases" / "own_list"
SCRIPT = Path(inside.__file__)
Parse = Callable[[str], tuple[Flag, ...]]


@pytest.mark.parametrize(
    ("name", "parse"), [("llama-server", parse_llamacpp_help), ("vllm-serve", parse_argparse_help)]
)
def test_a_help_text_comes_to_these_flags(name: str, parse: Parse) -> None:
    """Excerpts of `llama-server --help` (0.1.0-dev, 7e4c0a9) and `vllm serve --help=all` (0.32.0 for CPUs)."""
    flags = parse((CASES / f"{name}.help").read_text())

    found = encode(Catalogue(engine="x", version="1", flags={flag.name: flag for flag in flags}))["flags"]

    assert found == json.loads((CASES / f"{name}.json").read_text())


PARSER = """
import argparse, functools, json, sys
from dataclasses import dataclass, field
from typing import Annotated, Literal

print("INFO loading, on stdout as this engine logs")

def parse_type(of):
    def _parse_type(text): return of(text)
    return _parse_type

def optional_type(of):
    def _optional_type(text): return parse_type(of)(text)
    return _optional_type

def human_readable_int_or_auto(text): return int(text)

class Ge:
    ge = 1

@dataclass
class Inner:
    deep: bool = False

@dataclass
class Compilation:
    mode: int | None = None
    backend: Literal["inductor", "eager"] = "inductor"
    sizes: list[int] = field(default_factory=list)
    inner: Inner | None = None
    passes: Annotated[int, Ge()] = 3

class Old(argparse.Action):
    def __call__(self, *_): sys.exit(2)

def dataclass_reader(of):
    def parse_dataclass(text, cls=of): return cls(**json.loads(text))
    return parse_dataclass

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--headless", action="store_true", help="Deprecated: use nothing.")
    group = parser.add_argument_group("Cache")
    group.add_argument("--max-model-len", type=human_readable_int_or_auto, default=None)
    group.add_argument("--prefix", action=argparse.BooleanOptionalAction, default=True)
    group.add_argument("--dtype", "-dt", type=optional_type(str), choices=["auto", "fp8", None], default="auto")
    group.add_argument("--backend", type=lambda text: text.lower(), choices=["marlin", "triton"])
    group.add_argument("--served-name", type=optional_type(str), nargs="+")
    group.add_argument("--compilation-config", "-cc", type=dataclass_reader(Compilation), default=Compilation())
    group.add_argument("--speculative-config", type=optional_type(json.loads))
    group.add_argument("--middleware", action="append", default=[])
    group.add_argument("--parser", metavar="{a,b} or registered")
    group.add_argument("--gone", action=Old, nargs=0)
    return parser
"""
FLEXIBLE = "import argparse\nclass FlexibleArgumentParser(argparse.ArgumentParser):\n    _deprecated = set()\n"
CONFIG = "from dataclasses import dataclass\n@dataclass\nclass SpeculativeConfig:\n    method: str | None = None\n"
ENVS = (
    "import os\nenvironment_variables = {'VLLM_USE_X': lambda: True, 'VLLM_PORT': lambda: None,\n"
    "    'VLLM_API_KEY': lambda: 'hidden', 'VLLM_BROKEN': lambda: 1 / 0}\n"
)
LAYOUTS = [
    ("vllm/entrypoints/openai/cli_args.py", "vllm/utils/__init__.py"),
    ("vllm/entrypoints/launchers/cli_args.py", "vllm/utils/argparse_utils.py"),
    ("vllm/entrypoints/common/cli_args.py", "vllm/utils/argparse_utils.py"),
]


def package(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()


def run_script(folder: Path, engine: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-c", SCRIPT.read_text(), engine)
    env = {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run(words, capture_output=True, text=True, env=env, cwd=folder, check=False)


def read(folder: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    monkeypatch.setattr(live, "MIN_FLAGS", 1)
    done = run_script(folder, engine)
    assert done.returncode == 0, done.stderr
    return live.parse_argparse(done.stdout, engine)


@pytest.mark.parametrize(("where", "flexible"), LAYOUTS)
def test_vllms_parser_is_found_wherever_a_version_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, flexible: str
) -> None:
    package(
        tmp_path,
        {
            "vllm/__init__.py": "__version__ = '0.31.0'\n",
            where: PARSER,
            flexible: FLEXIBLE,
            "vllm/config.py": CONFIG,
            "vllm/envs.py": ENVS,
        },
    )

    found = read(tmp_path, "vllm", monkeypatch)

    assert (found.version, found.is_own, found.env_prefix) == ("0.31.0", True, "VLLM_")
    assert found.env == {"VLLM_USE_X": "1", "VLLM_PORT": None, "VLLM_API_KEY": None, "VLLM_BROKEN": None}
    assert encode(found)["flags"] == {
        "--headless": {"kind": "none", "default": False, "deprecated": "Deprecated: use nothing."},
        "--max-model-len": {"kind": "int", "also": ["auto", "-1"], "is_human_int": True, "group": "Cache"},
        "--prefix": {"kind": "bool", "negatives": ["--no-prefix"], "default": True, "group": "Cache"},
        "--dtype": {
            "kind": "str",
            "aliases": ["-dt"],
            "choices": ["auto", "fp8"],
            "default": "auto",
            "is_nullable": True,
            "group": "Cache",
        },
        "--backend": {"kind": "str", "known": ["marlin", "triton"], "is_any_case": True, "group": "Cache"},
        "--served-name": {"kind": "list", "item": "str", "nargs": "+", "is_nullable": True, "group": "Cache"},
        "--compilation-config": {
            "kind": "json",
            "aliases": ["-cc"],
            "json_class": "Compilation",
            "default_text": "Compilation()",
            "group": "Cache",
        },
        "--speculative-config": {
            "kind": "json",
            "is_nullable": True,
            "json_class": "SpeculativeConfig",
            "group": "Cache",
        },
        "--middleware": {"kind": "str", "default": [], "is_repeatable": True, "group": "Cache"},
        "--parser": {"kind": "str", "known": ["a", "b"], "group": "Cache"},
        "--gone": {"kind": "none", "group": "Cache"},
    }
    assert encode(found)["json_classes"] == {
        "Compilation": {
            "mode": {"kind": "int", "is_nullable": True},
            "backend": {"kind": "str", "choices": ["inductor", "eager"], "default": "inductor"},
            "sizes": {"kind": "list"},
            "inner": {"kind": "json", "is_nullable": True, "json_class": "Inner"},
            "passes": {"kind": "int", "default": 3, "bounds": {"ge": 1}},
        },
        "Inner": {"deep": {"kind": "bool", "default": False}},
        "SpeculativeConfig": {"method": {"kind": "str", "is_nullable": True}},
    }


SGLANG = """
import argparse

class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, error_message=None, new_flag=None, nargs=0, **more):
        self.error_message = error_message
        if new_flag: self.new_flag = new_flag
        super().__init__(option_strings, dest, nargs=nargs, **more)
    def __call__(self, parser, *_): parser.error(self.error_message or "")

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", required=True)
        parser.add_argument("--tp-size", "--tp", type=int, default=1)
        parser.add_argument("--enable-metrics", action="store_true")
        parser.add_argument("--old-switch", action=DeprecatedAction, new_flag="--new-switch")
        parser.add_argument("--ended", action=DeprecatedAction, error_message="--ended was removed: use --tp-size")
"""
ENVIRON = """
import os
class EnvField:
    def __init__(self, default): self.default = default
class Envs:
    SGLANG_A = EnvField(False)
    SGLANG_COMPUTED = EnvField(lambda: 3)
"""


def test_sglangs_parser_and_the_variables_of_its_sources_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(
        tmp_path,
        {
            "sglang/__init__.py": "__version__ = '0.5.12'\n",
            "sglang/srt/server_args.py": SGLANG,
            "sglang/srt/environ.py": ENVIRON,
            "sglang/srt/layers/moe.py": "import os\nos.environ.get('SGLANG_IN_A_SOURCE')\n# SGLANG_IN_A_REMARK\n",
        },
    )

    found = read(tmp_path, "sglang", monkeypatch)

    assert found.env == {"SGLANG_A": "0", "SGLANG_COMPUTED": None, "SGLANG_IN_A_SOURCE": None}
    assert encode(found)["flags"] == {
        "--model-path": {"kind": "str", "aliases": ["--model"]},
        "--tp-size": {"kind": "int", "aliases": ["--tp"], "default": 1},
        "--enable-metrics": {"kind": "none", "default": False},
        "--old-switch": {"kind": "none", "deprecated": "use --new-switch"},
        "--ended": {"kind": "none", "deprecated": "--ended was removed: use --tp-size", "is_removed": True},
    }


REGISTRY = "class {0}:\n    @classmethod\n    def list_registered(cls): return {1}\n"


@pytest.mark.parametrize("where", ["vllm/tool_parsers/__init__.py", "vllm/entrypoints/openai/tool_parsers.py"])
def test_the_parsers_that_are_registered_are_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """What a plugin of the image's own registers while the parser is made is not in the help, and counts."""
    parser = "import importlib\ndef make_arg_parser(parser):\n"
    parser += "    parser.add_argument('--tool-call-parser', metavar='{hermes,xlam} or registered')\n"
    parser += "    parser.add_argument('--reasoning-parser', default='', metavar='{a,b} or registered')\n"
    parser += f"    importlib.import_module({where.removesuffix('.py').removesuffix('/__init__').replace('/', '.')!r})"
    parser += ".names.append('by_plugin')\n    return parser\n"
    registry = "names = ['xlam', 'hermes']\n" + REGISTRY.format("ToolParserManager", "names")
    place = {"vllm/__init__.py": "", LAYOUTS[1][0]: parser, LAYOUTS[1][1]: FLEXIBLE, where: registry}
    package(tmp_path, place)

    flags = read(tmp_path, "vllm", monkeypatch).flags

    tools, reasoning = flags["--tool-call-parser"], flags["--reasoning-parser"]
    assert (tools.choices, tools.known) == (("by_plugin", "hermes", "xlam"), ())
    assert (reasoning.choices, reasoning.known) == ((), ("a", "b"))


def test_a_switch_that_is_off_under_another_name_keeps_the_old_negative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM 0.33: `--enable-x` and `--disable-x`; `--no-enable-x` is taken and not listed."""
    parser = (
        "import argparse\n"
        "class EnableDisableAction(argparse.Action):\n"
        "    def __call__(self, parser, space, values, name): setattr(space, self.dest, name.startswith('--enable'))\n"
        "def make_arg_parser(parser):\n"
        "    parser.add_argument('--enable-x', '--disable-x', dest='enable_x', nargs=0, action=EnableDisableAction)\n"
        "    return parser\n"
    )
    place = {"vllm/__init__.py": "", "vllm/entrypoints/common/cli_args.py": parser, LAYOUTS[-1][1]: FLEXIBLE}
    package(tmp_path, place)

    (flag,) = read(tmp_path, "vllm", monkeypatch).flags.values()

    assert (flag.kind, flag.negatives) == (ValueKind.BOOL, ("--disable-x", "--no-enable-x"))


@pytest.mark.parametrize(
    ("torch", "device"),
    [
        ("class version:\n    cuda, hip = '13.0', None\n", "cuda"),
        ("class version:\n    cuda = hip = None\n", "cpu"),
        ("", "cpu"),
    ],
)
def test_vllm_without_a_device_is_given_the_one_it_is_built_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: str, device: str
) -> None:
    parser = "from vllm.platforms import current_platform\ndef make_arg_parser(parser):\n"
    parser += "    parser.add_argument('--on', choices=['auto', current_platform.device_type])\n    return parser\n"
    platforms = "class Unspecified:\n    device_type = ''\ncurrent_platform = Unspecified()\n"
    package(
        tmp_path,
        {
            "torch/__init__.py": torch,
            "vllm/__init__.py": "",
            "vllm/platforms/__init__.py": platforms,
            LAYOUTS[-1][0]: parser,
            LAYOUTS[-1][1]: FLEXIBLE,
        },
    )

    assert read(tmp_path, "vllm", monkeypatch).flags["--on"].choices == ("auto", device)


def test_an_engine_that_cannot_be_imported_says_why_on_stderr(tmp_path: Path) -> None:
    package(tmp_path, {"vllm/__init__.py": "", "vllm/entrypoints/common/cli_args.py": "import no_such_library\n"})

    done = run_script(tmp_path, "vllm")

    assert (done.returncode, done.stdout) == (1, "")
    assert "ModuleNotFoundError" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("usage: something\n", "printed no flag list"),
        (f'{inside.MARK}{{"engine": "sglang"}}\n', "'sglang'"),
        (f'{inside.MARK}{{"engine": "vllm", "version": "1", "flags": [], "classes": {{}}, "env": {{}}}}', "lists 0"),
    ],
)
def test_what_is_no_list_of_the_engine_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        live.parse_argparse(text, "vllm")


def test_a_help_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="lists 1 flags"):
        live.parse_help("-x, --exit   leave\n", "llamacpp")
