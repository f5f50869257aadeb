"""The figures of requests and of any cell, as data for `figures.definitions`."""

from __future__ import annotations

from orchestrator.figures.definitions import Definition

REQUESTS = (
    Definition(
        name="ttft",
        tag="first_token_from_send/v1",
        unit="ms",
        meaning="Wait for the first generated token of any kind: content, reasoning, tool call, or a withheld token's "
        "id. A role-only chunk or an empty text is none.",
        formula="first_token_ns - sent_ns (first byte handed to the kernel)",
        peers="llama-benchy e2e_ttft (no tool calls), vLLM TTFT (clock before the connection, reasoning_content not "
        "seen), SGLang (TCP connect inside), GuideLLM (wall clock)",
    ),
    Definition(
        name="ttft_scheduled",
        tag="first_token_from_schedule/v1",
        unit="ms",
        meaning="The same from when the request was due: what a person waits. The headline of an open loop.",
        formula="first_token_ns - scheduled_ns",
        peers="nobody's headline; vLLM adds client_queue_time beside, GuideLLM request_scheduled_latency",
    ),
    Definition(
        name="ttft_adjusted",
        tag="percentile_failures_infinite/v1",
        unit="ms",
        meaning="Percentiles in which a failed request waits for ever; what the end of the sweep cut is left out. Also "
        "of ttft_scheduled and of e2e.",
        formula="nearest-rank percentile over good values and +inf for each failure",
        peers="AIPerf adj_*; all others drop failures, so a server that sheds load looks faster",
    ),
    Definition(
        name="ttfa",
        tag="first_answer_from_send/v1",
        unit="ms",
        meaning="Wait for the first content or tool call, after the reasoning; null when there was none.",
        formula="first_answer_ns - sent_ns",
        peers="GuideLLM TTFOT, AIPerf TTFO; llmperf calls it TTFT",
    ),
    Definition(
        name="ttfr",
        tag="first_event_from_send/v1",
        unit="ms",
        meaning="Wait for the first event of the stream, which may be a role chunk sent after a part of the prefill.",
        formula="first_event_ns - sent_ns",
        peers="llama-benchy ttfr; InferenceX calls it TTFT in chat",
    ),
    Definition(
        name="queue_wait",
        tag="ready_from_schedule/v1",
        unit="ms",
        meaning="Wait at the client's own cap before it was sent; null in records that do not tell ready_ns.",
        formula="ready_ns - scheduled_ns",
        peers="vLLM client_queue_time; in SGLang invisible",
    ),
    Definition(
        name="lateness",
        tag="sent_from_ready/v1",
        unit="ms",
        meaning="How late the load generator itself was: an error of ours in every latency from the schedule.",
        formula="sent_ns - ready_ns",
        peers="AIPerf replay_sched_lag, inference-perf schedule_delay (both with the queue in them)",
    ),
    Definition(
        name="tpot",
        tag="after_first_event/v1",
        unit="ms",
        meaning="Time per output token after the first event, whose own tokens (several under speculation) are left "
        "out; null when their number is unknown, or for one event.",
        formula="(last_token_ns - first_token_ns) / (output_tok - tokens of the first event)",
        peers="vLLM and SGLang TPOT divide by output_tok - 1 (10.7 % fast at 32 tokens, 4 a chunk); GuideLLM and "
        "AIPerf call it ITL; GuideLLM's TPOT is our normalised",
    ),
    Definition(
        name="itl",
        tag="gap_per_event/v1",
        unit="ms",
        meaning="Gaps between events that carried tokens, pooled over requests: the stutter that a reader sees.",
        formula="t[i] - t[i-1], once per event however many tokens",
        peers="vLLM ITL, AIPerf ICL; GuideLLM keeps none and shows percentiles of means",
    ),
    Definition(
        name="itl_token",
        tag="gap_per_token_weighted/v1",
        unit="ms",
        meaning="The gaps spread over the tokens that each brought; null as soon as one event's tokens are unknown.",
        formula="(t[i] - t[i-1]) / tok[i], counted tok[i] times",
        peers="SGLang ITL on its native path; AIPerf with per-chunk usage",
    ),
    Definition(
        name="e2e",
        tag="response_end_from_send/v1",
        unit="ms",
        meaning="Whole answer, to the end of the response.",
        formula="end_ns - sent_ns",
        peers="vLLM E2EL ends at the last token chunk, SGLang's at [DONE], InferenceX's at the usage chunk",
    ),
    Definition(
        name="e2e_scheduled",
        tag="response_end_from_schedule/v1",
        unit="ms",
        meaning="The same from when the request was due.",
        formula="end_ns - scheduled_ns",
        peers="vLLM e2el_including_client_queue",
    ),
    Definition(
        name="normalised",
        tag="e2e_per_output_token/v1",
        unit="ms",
        meaning="End to end per output token, the first one's wait included.",
        formula="(end_ns - sent_ns) / output_tok",
        peers="GuideLLM TPOT, inference-perf normalized TPOT, about llmperf's ITL",
    ),
    Definition(
        name="per_user",
        tag="output_tok_over_e2e_median/v1",
        unit="tok/s",
        meaning="What one user gets, prefill and all: median over requests.",
        formula="median(output_tok / (end_ns - sent_ns))",
        peers="GuideLLM output tokens per second of a request",
    ),
    Definition(
        name="decode",
        tag="inverse_tpot_median/v1",
        unit="tok/s",
        meaning="What one user gets once it flows: median over requests, the slowest beside it.",
        formula="median(1000 / tpot)",
        peers="llama-benchy t/s (req), InferenceX interactivity (inverse of a percentile of TPOT)",
    ),
    Definition(
        name="output",
        tag="output_tok_over_run/v1",
        unit="tok/s",
        meaning="All users together over the whole run, prefill and drain included (tg_run); mean over repeats with "
        "its t-interval. A repeat with an uncounted answer gives none.",
        formula="sum(output_tok of good requests) / (last end_ns - first sent_ns)",
        peers="vLLM, SGLang, InferenceX output throughput; SGLang asks the server something before it stops the clock",
    ),
    Definition(
        name="tg_all_decoding",
        tag="all_streams_decoding/v1",
        unit="tok/s",
        meaning="All users together while all of them decode; null when they never did or an event's tokens are "
        "unknown.",
        formula="tokens of events in (last first token, first last token] / its length; in a closed loop summed over "
        "all such times",
        peers="SGLang one_batch_server; llama-benchy takes first token to last token: ramp and tail included",
    ),
    Definition(
        name="tg_steady",
        tag="in_flight_95_percent/v1",
        unit="tok/s",
        meaning="All users together while at least 95 % of the asked (open loop: of the peak) requests are in flight; "
        "dips of up to 10 ms, a place being refilled, are bridged.",
        formula="tokens of events in those windows / their length, exact sweep-line",
        peers="SGLang steady_state_serving (longest window only, tokens by chunk share), GuideLLM by trimming",
    ),
    Definition(
        name="peak",
        tag="best_sliding_second_by_tokens/v1",
        unit="tok/s",
        meaning="Most tokens in any one second of a run; null for runs shorter than that.",
        formula="max over events of the tokens in [t, t + 1 s)",
        peers="vLLM and SGLang count chunks in fixed seconds (below the mean under speculation); llama-benchy divides "
        "by the run when it is shorter",
    ),
    Definition(
        name="concurrency_peak",
        tag="sweep_line_in_flight/v1",
        unit="",
        meaning="Most requests in flight at once, exactly.",
        formula="max over time of requests with sent_ns <= t < end_ns",
        peers="vLLM and SGLang count a request in every second that it touches: 2 for one user",
    ),
    Definition(
        name="concurrency_mean",
        tag="little/v1",
        unit="",
        meaning="Requests in flight, averaged over the run.",
        formula="sum(end_ns - sent_ns) / run",
        peers="vLLM bench and SGLang print it as concurrency",
    ),
    Definition(
        name="prompt",
        tag="prompt_tok_over_run/v1",
        unit="tok/s",
        meaning="Prompt tokens taken in over the whole run, cached ones and decode time included: not a prefill speed.",
        formula="sum(prompt_tok of good requests) / (last end_ns - first sent_ns)",
        peers="vLLM input throughput; others print it as prefill speed",
    ),
    Definition(
        name="prefill",
        tag="uncached_tok_over_prefill_time/v1",
        unit="tok/s",
        meaning="Prompt tokens really computed over the time that took; the method is named beside it. Null when "
        "cached tokens are unknown and there could be some.",
        formula="(prompt_tok - cached_tok) / the server's own prefill time; else (p2 - p1) / (TTFT(p2) - TTFT(p1)) of "
        "two cold lengths",
        peers="llama-benchy prompt_tokens / (ttfr - latency), AIPerf ISL / TTFT: cached tokens counted, constants kept "
        "or guessed",
    ),
    Definition(
        name="cached_share",
        tag="cached_over_prompt_tok/v1",
        unit="",
        meaning="Share of the prompt that came from the prefix cache, by the server's own count; null when it did not "
        "tell one of them (absent is not zero).",
        formula="sum(cached_tok) / sum(prompt_tok) of good requests",
        peers="AIPerf usage_prompt_cache_read_pct; most tools do not look",
    ),
    Definition(
        name="percentile",
        tag="nearest_rank_3_beyond/v1",
        unit="",
        meaning="An observed value, with its order-statistic interval; above the median hidden below 3 / (1 - p) "
        "values: 30 for p90, 60 for p95, 300 for p99.",
        formula="the smallest value that at least p of the values do not exceed",
        peers="GuideLLM hides too; the others interpolate, and print a p99 of ten",
    ),
    Definition(
        name="interval",
        tag="t_95_over_repeats/v1",
        unit="",
        meaning="How well a mean over repeats is known; null with one repeat.",
        formula="mean +- t(0.975, n - 1) x sd / sqrt(n), sd with n - 1",
        peers="AIPerf alike; llama-benchy, vLLM and SGLang print a population sigma over pooled requests",
    ),
    Definition(
        name="drift",
        tag="last_over_first_repeat_log_welch/v1",
        unit="",
        meaning="Whether the last repeat was slower than the first; said when the interval excludes 1 and the change "
        "is 2 % or more. Null below 5 requests a repeat.",
        formula="geometric mean of normalised in the last repeat / in the first, Welch's t on logarithms",
        peers="none",
    ),
    Definition(
        name="goodput",
        tag="slo_errors_are_misses/v1",
        unit="req/s",
        meaning="Requests that met every limit of the service level, per second; beside it the attainment with "
        "Wilson's interval, and met / missed / undecided. What cannot be judged is counted apart.",
        formula="met / run; attainment = met / (met + missed), failures in missed",
        peers="vLLM drops failures and counts one-token answers as good; GuideLLM and AIPerf agree with us",
    ),
    Definition(
        name="server_ttft",
        tag="server_scheduled_to_first_token/v1",
        unit="ms",
        meaning="First token by the server's own clock, its queue apart (vLLM) or not told (llama.cpp).",
        formula="vLLM time_to_first_token_ms, llama.cpp prompt_ms",
        peers="vLLM bench stores it; others pass it through",
    ),
    Definition(
        name="server_queue",
        tag="server_queue_time/v1",
        unit="ms",
        meaning="Time a request waited at the server before its prefill began, by the server's own clock.",
        formula="vLLM queue_time_ms",
        peers="vLLM bench stores it; others pass it through",
    ),
    Definition(
        name="server_gap",
        tag="client_minus_server_ttft/v1",
        unit="ms",
        meaning="What the client saw on top of the server: network, HTTP, tokenizer, our stamps. Client or network "
        "bound when its median exceeds both 5 ms and 3 % of TTFT.",
        formula="ttft - (server_queue + server_ttft)",
        peers="none publishes it",
    ),
    Definition(
        name="acceptance_length",
        tag="one_plus_accepted_per_draft/v1",
        unit="tok",
        meaning="Tokens a step under speculation, from the server's counters over the repeats.",
        formula="1 + delta accepted tokens / delta drafts",
        peers="vLLM alike; SGLang spec_accept_length since its start",
    ),
    Definition(
        name="acceptance_rate",
        tag="accepted_over_drafted_tok/v1",
        unit="",
        meaning="Share of drafted tokens that were accepted.",
        formula="delta accepted tokens / delta drafted tokens",
        peers="vLLM alike",
    ),
)
