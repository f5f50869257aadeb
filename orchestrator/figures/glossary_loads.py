"""The figures of certain loads and of series of cells, as data for `figures.definitions`."""

from __future__ import annotations

from orchestrator.figures.definitions import Definition

LOADS = (
    Definition(
        name="achieved_rate",
        tag="gaps_over_their_length/v1",
        unit="req/s",
        meaning="Arrivals of an open loop, by schedule and by sends, repeats pooled.",
        formula="(requests - 1) / (last - first)",
        peers="requests / duration: the drain counts as idle time",
    ),
    Definition(
        name="dispersion",
        tag="variance_over_mean_per_bin/v1",
        unit="",
        meaning="1 for Poisson arrivals, more for bursty ones; with the interval in which 95 % of Poisson runs lie.",
        formula="var / mean of sends in bins of max(1 s, 5 / rate); interval chi2(0.025 .. 0.975, k - 1) / (k - 1)",
        peers="none checks it; a Poisson load with 6.2 is in use",
    ),
    Definition(
        name="burstiness",
        tag="gamma_shape_by_moments/v1",
        unit="",
        meaning="Gamma shape of the gaps that were really sent: 1 Poisson, below bursty, above steady.",
        formula="mean(gap)^2 / var(gap)",
        peers="vLLM takes it as an argument and does not check it",
    ),
    Definition(
        name="ks",
        tag="ks_distance_to_asked_gamma/v1",
        unit="",
        meaning="How far the sent gaps are from the asked process; the limit that 95 % of true ones keep stands "
        "beside. Null for ramps, traces, metronomes, and where a cap held requests back.",
        formula="sup |F_sent(gap) - Gamma(burstiness, 1 / (rate x burstiness))|, limit 1.358 / sqrt(n)",
        peers="none",
    ),
    Definition(
        name="late_share",
        tag="sent_over_5_ms_after_ready/v1",
        unit="",
        meaning="Share of requests that the client sent more than 5 ms late; above 1 % the cell is invalid.",
        formula="count(sent_ns - ready_ns > 5 ms) / sent",
        peers="AIPerf re-anchors the schedule instead",
    ),
    Definition(
        name="outstanding_slope",
        tag="due_and_unanswered_block_means/v1",
        unit="req/s",
        meaning="How fast requests pile up under an open load; growing when the interval is above 0 and the slope "
        "above 2 % of the arrival rate.",
        formula="regression of the mean number due and not ended, over blocks 3 to 10 of 10 of the arrivals' time",
        peers="GuideLLM's over-saturation test looks at requests in flight, which a cap bounds",
    ),
    Definition(
        name="overload_verdict",
        tag="copes_queues_sheds_breaks/v1",
        unit="",
        meaning="Past capacity: breaks (over 1 % fail, or half fail after it), sheds (over 1 % answered 429 or 503), "
        "queues (tail doubled, requests pile up, or time out), else copes.",
        formula="the first that applies, in that order",
        peers="none",
    ),
    Definition(
        name="tail_growth",
        tag="p95_main_over_before/v1",
        unit="",
        meaning="How much longer the slow ones wait under overload; needs 20 answered requests on both sides.",
        formula="p95(ttft_scheduled, main) / p95(ttft_scheduled, before)",
        peers="none",
    ),
    Definition(
        name="recovery",
        tag="back_within_twice_p95_before/v1",
        unit="s",
        meaning="From the last overload arrival until first tokens are fast again, the worst repeat; null if never.",
        formula="due time of the first `after` request that with the two after it is within 2 x p95(before)",
        peers="none",
    ),
    Definition(
        name="expected_cached_share",
        tag="expected_cached_over_prompt_tok/v1",
        unit="",
        meaning="What the cache should have given: each request's shared tokens, rounded down to the cache's unit.",
        formula="sum(expected_cached_tok, else shared_tok) / sum(prompt_tok)",
        peers="none enforces it",
    ),
    Definition(
        name="reread",
        tag="shared_minus_cached_tok/v1",
        unit="tok",
        meaning="Shared tokens that were computed again, per agent and in total of a repeat; where each hit ended "
        "stands beside. A cold swarm has one reading in it that nobody can save.",
        formula="max(0, shared_tok - cached_tok)",
        peers="none",
    ),
    Definition(
        name="all_started",
        tag="first_send_to_last_first_token/v1",
        unit="s",
        meaning="Time until every agent of a swarm has its first token; null when one has none.",
        formula="max(first_token_ns) - min(sent_ns)",
        peers="SGLang one_batch TTFT",
    ),
    Definition(
        name="prefix_load",
        tag="prime_uncached_tok_over_ttft/v1",
        unit="tok/s",
        meaning="The one request that reads the prefix before the agents come: its time and speed.",
        formula="ttft of phase prime; (prompt_tok - cached_tok) / ttft",
        peers="llama-benchy ctx_pp",
    ),
    Definition(
        name="session_duration",
        tag="sum_of_turns_e2e/v1",
        unit="s",
        meaning="How long a whole session keeps its user waiting: think time is not in it. Sessions with a failed turn "
        "are counted apart.",
        formula="sum over turns of (end_ns - sent_ns)",
        peers="vLLM multi_turn conversation runtime includes the pauses",
    ),
    Definition(
        name="slowdown",
        tag="together_over_alone_log_welch/v1",
        unit="",
        meaning="A lane beside the others over the same lane alone, for TTFT, TPOT and rate, with its interval.",
        formula="ratio of geometric means over requests (rate: over repeats), Welch's t on logarithms",
        peers="vLLM's probe requests show the first of them",
    ),
    Definition(
        name="documents",
        tag="good_over_run_per_hour/v1",
        unit="1/h",
        meaning="Documents ingested an hour, failed ones not counted.",
        formula="3600 x good requests / run, mean over repeats",
        peers="request throughput x 3600",
    ),
    Definition(
        name="prefill_share",
        tag="prefill_over_service_time/v1",
        unit="",
        meaning="Share of the time that no decode lever touches; by the server's own times if it tells them, else by "
        "TTFT (its queue included), and it says which.",
        formula="sum(prefill) / sum(prefill + decode)",
        peers="none",
    ),
    Definition(
        name="efficiency",
        tag="rate_over_c_times_single/v1",
        unit="",
        meaning="Share of perfect scaling from the one-user cell of the same load.",
        formula="output(c) / (c x output(1))",
        peers="none",
    ),
    Definition(
        name="knee",
        tag="two_joined_lines/v1",
        unit="users",
        meaning="The measured level from which more users bring at most half as many tokens each; null below 5 levels "
        "or when the series ends before it.",
        formula="least squares of two joined lines through (concurrency, output), the joint tried at every inner level",
        peers="GuideLLM knee_detection",
    ),
    Definition(
        name="batch",
        tag="answers_over_rate/v1",
        unit="s",
        meaning="Time for so many answers: derived from the rate, and tagged so, unless that many really ran.",
        formula="answers x output_tok / output",
        peers="none",
    ),
)
