"""The few distribution functions that intervals need: Student's t, chi-square, binomial, Gamma.

Written out (two incomplete functions, 1e-10 right) so that figures need numpy alone and a sweep that asks whether its
interval is tight enough needs neither numpy nor scipy. Source: the continued fractions and the series of the
regularised incomplete beta and gamma functions, DLMF 8.17.22 and 8.7.1 / 8.9.2, evaluated by Lentz's method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

EPS = 1e-15
TINY = 1e-300
ROUNDS = 10_000


def normal_quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a, b > 0."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )

    def coefficient(n: int) -> float:
        m = n // 2
        if n % 2 == 0:
            return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))

    return front / _lentz(1.0, coefficient, lambda _: 1.0)


def gamma_cdf(x: float, shape: float) -> float:
    """The regularised lower incomplete gamma function P(shape, x): the Gamma distribution of scale 1."""
    if x <= 0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1:
        term = total = 1 / shape
        for n in range(1, ROUNDS):
            term *= x / (shape + n)
            total += term
            if term < total * EPS:
                break
        return front * total
    return 1 - front / _lentz(x + 1 - shape, lambda n: -n * (n - shape), lambda n: x + 2 * n + 1 - shape)


def binomial_cdf(k: int, n: int, share: float) -> float:
    """P(at most k of n), each with probability `share`."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else beta_cdf(1 - share, n - k, k + 1)


def t_cdf(t: float, df: float) -> float:
    tail = beta_cdf(df / (df + t * t), df / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(share: float, df: float) -> float:
    """Student's t with `df` > 0 degrees of freedom (not whole ones: Welch's)."""
    if share < 0.5:
        return -t_quantile(1 - share, df)
    return _invert(lambda t: t_cdf(t, df), share, start=1.0)


@lru_cache(maxsize=4096)
def chi_square_quantile(share: float, df: float) -> float:
    return _invert(lambda x: gamma_cdf(x / 2, df / 2), share, start=float(df))


def _lentz(first: float, a: Callable[[int], float], b: Callable[[int], float]) -> float:
    """first + a(1)/(b(1) + a(2)/(b(2) + …))."""
    value = c = first or TINY
    d = 0.0
    for n in range(1, ROUNDS):
        d = b(n) + a(n) * d or TINY
        c = b(n) + a(n) / c or TINY
        d = 1 / d
        step = c * d
        value *= step
        if abs(step - 1) < EPS:
            break
    return value


def _invert(cdf: Callable[[float], float], share: float, *, start: float) -> float:
    """Where a cdf over [0, ∞) reaches `share`, by bisection to the last digit but few."""
    low, high = 0.0, start
    while cdf(high) < share:
        low, high = high, high * 2
    for _ in range(100):
        middle = (low + high) / 2
        if middle in {low, high} or high - low < 1e-13 * high:
            break
        low, high = (middle, high) if cdf(middle) < share else (low, middle)
    return (low + high) / 2
