"""What a profile's memory setting comes to on a host, and whether the host can give it. Pure.

On a DGX Spark the GPU's memory is the host's: total is MemTotal, free is MemAvailable. (CUDA's total is up to 2 percent
more; on a box with a discrete GPU these figures mean nothing.) The engines read one number in
three ways: vLLM takes a fraction of the total and refuses to start unless that much is free; SGLang takes a fraction of
what is free when it starts; llama.cpp has no such number and allocates weights, cache and buffers as they come.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.profile.model import ModelRef, Profile

GIB = 1 << 30
HEADROOM_GIB = 10.0
"""What should stay available on a box whose GPU shares the host's memory; below about 4 GiB such a box freezes."""
MOE_HEADROOM_GIB = 12.0
"""Likewise for mixture-of-experts models: their autotuning and weight repacking reach higher for a while."""
VLLM_DEFAULT_FRACTION = 0.9

_RETURN_TOLERANCE_GIB = 1.0
_ACTIVE_PARAMETERS = re.compile(r"(?i)(?:^|[-_])(?:a\d+(?:\.\d+)?b|moe)(?:[-_.]|$)|gpt-oss|mixtral|deepseek-v[234]")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """What the engine may take on one host. None: nobody can say before it has started.

    Attributes:
        engine_gib: What it will take.
        headroom_gib: What stays available of what is available now.
        problem: Why the engine will refuse to start, None when it will not for this reason, or nothing was declared.
        warnings: What a careful person would be told.
        lines: How the figures come about, for the plan.
    """

    engine_gib: float | None = None
    headroom_gib: float | None = None
    problem: str | None = None
    warnings: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReturn:
    """How much memory came back when a server was stopped. Bytes of MemAvailable; None: not measured.

    Attributes:
        returned_bytes: What stopping gave back (may be negative when something else grew meanwhile).
        missing_bytes: How much less is available than before the server was started, 0 when all of it came back.
        is_back: Within 1 GiB of what was available before: MemAvailable drifts by that much by itself.
        waited_s: How long the return was watched.
    """

    returned_bytes: int
    missing_bytes: int | None
    is_back: bool | None
    waited_s: float

    @property
    def line(self) -> str:
        """The one line for people."""
        came = f"{self.returned_bytes / GIB:.1f} GiB came back in {self.waited_s:.0f} s"
        if self.missing_bytes is None or self.is_back:
            return came
        return f"{came}, {self.missing_bytes / GIB:.1f} GiB less available than before the start"


def looks_like_moe(model: ModelRef) -> bool:
    """Whether the model's name follows the habits of mixture-of-experts models (`35B-A3B`, `gpt-oss`, `MoE`)."""
    return _ACTIVE_PARAMETERS.search(model.display.rsplit("/", 1)[-1]) is not None


def memory_budget(profile: Profile, *, total_bytes: int | None, available_bytes: int | None) -> MemoryBudget:
    """What the profile's `memory_fraction` or `memory_gib` comes to on a host.

    Args:
        total_bytes: MemTotal of the host, None before it was asked.
        available_bytes: MemAvailable just before the start, None likewise.
    """
    words = _words(profile, total_bytes, available_bytes)
    if words is None:
        return MemoryBudget(lines=_lines_without_budget(profile))
    engine_gib, line = words
    if available_bytes is None:
        return MemoryBudget(engine_gib=engine_gib, lines=(line,))
    available_gib = available_bytes / GIB
    headroom = available_gib - engine_gib
    return MemoryBudget(
        engine_gib=engine_gib,
        headroom_gib=headroom,
        problem=_refusal(profile, engine_gib, available_gib),
        warnings=_headroom_warnings(profile, headroom),
        lines=(line, f"{available_gib:.1f} GiB available now, {headroom:.1f} GiB stay for everything else"),
    )


def memory_return(
    *, before_start_bytes: int | None, before_stop_bytes: int, after_stop_bytes: int, waited_s: float
) -> MemoryReturn:
    """Compare MemAvailable before the start, before the stop, and when it had settled after the stop."""
    missing = None if before_start_bytes is None else max(0, before_start_bytes - after_stop_bytes)
    return MemoryReturn(
        returned_bytes=after_stop_bytes - before_stop_bytes,
        missing_bytes=missing,
        is_back=None if missing is None else missing <= _RETURN_TOLERANCE_GIB * GIB,
        waited_s=waited_s,
    )


def _words(profile: Profile, total_bytes: int | None, available_bytes: int | None) -> tuple[float, str] | None:
    """GiB and the sentence that explains them."""
    serve = profile.serve
    if profile.engine not in ("vllm", "sglang") or _is_on_cpu(profile):
        return None
    if serve.memory_gib is not None:
        return serve.memory_gib, f"memory_gib {serve.memory_gib:g}: the engine may take {serve.memory_gib:.1f} GiB"
    is_vllm = profile.engine == "vllm"
    base_bytes, base = (total_bytes, "total") if is_vllm else (available_bytes, "available at the start")
    fraction = serve.memory_fraction
    if fraction is None and is_vllm:
        fraction, said = VLLM_DEFAULT_FRACTION, f"no memory_fraction: vllm's default {VLLM_DEFAULT_FRACTION:g}"
    elif fraction is not None:
        said = f"memory_fraction {fraction:g}"
    if fraction is None or base_bytes is None:
        return None
    gib = fraction * base_bytes / GIB
    return gib, f"{said} of {base_bytes / GIB:.1f} GiB {base}: the engine may take {gib:.1f} GiB"


def _is_on_cpu(profile: Profile) -> bool:
    return profile.container.gpus == "none" or profile.env.get("VLLM_CPU_KVCACHE_SPACE") is not None


def _lines_without_budget(profile: Profile) -> tuple[str, ...]:
    serve = profile.serve
    if profile.engine == "vllm" and serve.memory_fraction is not None:
        return (f"memory_fraction {serve.memory_fraction:g} of the host's total memory",)
    if profile.engine == "sglang" and serve.memory_fraction is not None:
        return (f"memory_fraction {serve.memory_fraction:g} of what is available when it starts",)
    if profile.engine == "llamacpp":
        return ("llama.cpp allocates weights, context and buffers as they come: no fraction bounds it",)
    return ()


def _refusal(profile: Profile, engine_gib: float, available_gib: float) -> str | None:
    is_declared = profile.serve.memory_fraction is not None or profile.serve.memory_gib is not None
    if profile.engine == "vllm" and is_declared and available_gib < engine_gib:
        return f"vllm refuses to start unless {engine_gib:.1f} GiB are available, {available_gib:.1f} GiB are"
    return None


def _headroom_warnings(profile: Profile, headroom_gib: float) -> tuple[str, ...]:
    is_moe = looks_like_moe(profile.model)
    wanted = MOE_HEADROOM_GIB if is_moe else HEADROOM_GIB
    if headroom_gib >= wanted:
        return ()
    why = " for a mixture-of-experts model" if is_moe else ""
    return (
        f"{max(0.0, headroom_gib):.1f} GiB would stay available, {wanted:.0f} GiB are advised{why}: "
        "compiling and autotuning reach higher than the budget for a while",
    )
