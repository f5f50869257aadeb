"""When requests arrive in an open loop: all times fixed in advance from one seed.

Theory of operation: a renewal process of unit rate is drawn first, its gaps Gamma with mean 1 and shape `burstiness`
(1: exponential, so Poisson; below 1: clumps; the coefficient of variation of a gap is 1 / sqrt(burstiness)). Then time
is stretched so that the rate is the asked one, constant or ramped: arrival u of the unit process comes at the time at
which the rate, summed up from the start, has reached u.

Only `Random.random`, whose sequence Python guarantees, is drawn from, so a seed gives the same schedule everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from random import Random

from orchestrator.values import Json

EXACT, FREE = "exact", "free"
LINEAR, EXPONENTIAL = "linear", "exponential"


def arrivals(
    n: int,
    rate_rps: float,
    *,
    burstiness: float = 1.0,
    mode: str = EXACT,
    seed: int | str = 1,
    ramp: Mapping[str, Json] | None = None,
) -> tuple[float, ...]:
    """Ascending offsets in seconds from the start of the run, one for each of n requests.

    Args:
        rate_rps: Arrivals a second; without meaning where `ramp` is given.
        burstiness: Shape of the Gamma gaps, above 0: that of vLLM's `--burstiness`.
        mode: `exact`: n + 1 gaps are drawn and scaled to the length of the run, n / rate seconds, so that exactly n
            arrive in it. With burstiness 1 that is a Poisson process given its number (n sorted uniforms), not vLLM's
            scaling, which pins the last arrival to the end. `free`: the gaps as drawn.
        ramp: `from` and `to` in arrivals a second, and `shape`, `linear` (by default) or `exponential`. The run is as
            long as n arrivals take at the ramp's mean rate; what `free` draws beyond comes at the last rate.
    """
    gaps = unit_gaps(n + 1, burstiness, Random(f"{seed}/arrivals"))
    units = list(accumulate(gaps))
    if mode == EXACT:
        scale = n / units[-1] if n else 0.0
        units = [u * scale for u in units]
    if ramp is None:
        return tuple(u / rate_rps for u in units[:n])
    return tuple(_ramped(u, n, ramp) for u in units[:n])


def duration_s(n: int, rate_rps: float, ramp: Mapping[str, Json] | None = None) -> float:
    """Seconds in which n requests arrive: exactly in mode `exact`, on average in `free`."""
    return n / (rate_rps if ramp is None else mean_rate(ramp))


def mean_rate(ramp: Mapping[str, Json]) -> float:
    """Arrivals a second over the whole ramp."""
    first, last, shape = _parts(ramp)
    if shape == LINEAR or first == last:
        return (first + last) / 2
    return (last - first) / math.log(last / first)


def unit_gaps(n: int, shape: float, rng: Random) -> list[float]:
    """n draws of a Gamma distribution with this shape and mean 1."""
    return [_gamma(shape, rng) / shape for _ in range(n)]


def _ramped(unit: float, n: int, ramp: Mapping[str, Json]) -> float:
    """The time at which the integral of the rate is `unit`, of n in the whole run."""
    first, last, shape = _parts(ramp)
    whole_s = n / mean_rate(ramp)
    if unit > n:
        return whole_s + (unit - n) / last
    share = unit / n
    if first == last:
        return whole_s * share
    if shape == LINEAR:
        # rate(t)^2 = first^2 + (last^2 - first^2) share, from the integral of a linear rate.
        return whole_s * (math.sqrt(first**2 + (last**2 - first**2) * share) - first) / (last - first)
    growth = last / first
    return whole_s * math.log1p((growth - 1) * share) / math.log(growth)


def _parts(ramp: Mapping[str, Json]) -> tuple[float, float, str]:
    first, last = ramp["from"], ramp["to"]
    assert isinstance(first, int | float), "checked against the schema"
    assert isinstance(last, int | float), "checked against the schema"
    return float(first), float(last), str(ramp.get("shape", LINEAR))


def _gamma(shape: float, rng: Random) -> float:
    """One draw of Gamma(shape, 1), by Marsaglia and Tsang's squeeze; exponential by inversion.

    Source: G. Marsaglia, W. Tsang, A simple method for generating gamma variables, 2000; shapes below 1 by their
    remark that Gamma(a) is Gamma(a + 1) U^(1/a).
    """
    if shape == 1.0:
        return -math.log(1.0 - rng.random())
    if shape < 1.0:
        return _gamma(shape + 1.0, rng) * math.pow(1.0 - rng.random(), 1.0 / shape)
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(rng)
        v = (1.0 + c * x) ** 3
        if v > 0 and math.log(1.0 - rng.random()) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


def _normal(rng: Random) -> float:
    """Box and Muller's transform, one of its pair."""
    return math.sqrt(-2.0 * math.log(1.0 - rng.random())) * math.cos(2.0 * math.pi * rng.random())
