"""Write the recordings that ship with the workloads: made up, from one seed, in the shapes of real ones.

`python tools/samples.py` writes them anew, byte for byte the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

SAMPLES = Path(__file__).resolve().parents[1] / "profiles" / "workloads" / "samples"
SEED = 20261130
CONVERSATIONS = 40
ROWS = 60
BLOCK_TOK = 512

SUBJECTS = (
    "the delivery note of the second warehouse",
    "a leave request that overlaps with the stocktaking",
    "the maintenance plan of the packing line",
    "an offer for forty office chairs",
    "the minutes of Monday's meeting",
    "a complaint about a late parcel",
    "the travel costs of the trade fair",
    "the onboarding list for a new colleague",
    "a script that renames scanned invoices",
    "the opening hours over the holidays",
)
ASKS = (
    "Summarise {s} in three sentences.",
    "Write a friendly reply about {s}, please keep it short.",
    "What should I check first in {s}?",
    "Turn {s} into a table with dates and names.",
    "Explain {s} to someone who started this week.",
)
FOLLOW_UPS = (
    "Make that shorter.",
    "And how would you say it to a supplier?",
    "Which of these points is the most urgent, and why?",
    "Add the two dates that I mentioned, the fourth and the eleventh.",
    "Now in a more formal tone.",
    "What could go wrong if we leave it as it is?",
)
SENTENCES = (
    "The short answer is that two entries do not agree with each other.",
    "I would begin with the quantities, because everything else follows from them.",
    "Nothing in the text says who decides, so ask before you send it.",
    "The first date is fixed, the second one can be moved by a week.",
    "A table with four columns is enough: date, name, amount, remark.",
    "If the amount is right, the rest is a matter of wording.",
    "Please note that the older version still carries the previous address.",
    "Three people need to see this before noon, the others can wait.",
    "It helps to name the reason first and the request afterwards.",
    "Keep a copy of the original, since the numbering starts anew every year.",
)


def conversations(rng: Random) -> list[dict[str, Any]]:
    """ShareGPT's shape, with the untidiness of real files: a system turn, an answer first, a question left open."""
    return [_conversation(rng, i) for i in range(CONVERSATIONS)]


def _conversation(rng: Random, number: int) -> dict[str, Any]:
    turns: list[dict[str, str]] = []
    if number % 10 == 3:
        turns.append({"from": "system", "value": "You help in the office of a small company. Answer briefly."})
    if number % 10 == 7:
        turns.append({"from": "gpt", "value": rng.choice(SENTENCES)})
    for turn in range(min(12, 1 + int(rng.expovariate(0.45)))):
        ask = rng.choice(FOLLOW_UPS) if turn else rng.choice(ASKS).format(s=rng.choice(SUBJECTS))
        turns.append({"from": "human", "value": ask})
        turns.append({"from": "gpt", "value": " ".join(rng.choices(SENTENCES, k=rng.randint(1, 9)))})
    if number % 10 == 9:
        turns.append({"from": "human", "value": rng.choice(FOLLOW_UPS)})
    return {"id": f"made-up-{number:02d}", "conversations": turns}


def mooncake_rows(rng: Random) -> list[dict[str, Any]]:
    """Mooncake's shape: milliseconds, and blocks that several sessions share at their heads."""
    documents = [[d * 100 + k for k in range(rng.randint(2, 6))] for d in range(5)]
    rows, at_ms, fresh = [], 0.0, 1000
    for _ in range(ROWS):
        at_ms += rng.expovariate(0.5) * 1000
        head = rng.choice(documents)
        tail_tok = rng.randint(40, 900)
        own = -(-tail_tok // BLOCK_TOK)
        rows.append(
            {
                "timestamp": round(at_ms),
                "input_length": len(head) * BLOCK_TOK + tail_tok,
                "output_length": rng.randint(8, 200),
                "hash_ids": [*head, *range(fresh, fresh + own)],
            }
        )
        fresh += own
    return rows


def burst_rows(rng: Random) -> list[str]:
    """BurstGPT's shape: seconds, clumps, and a failed request now and then."""
    lines, at_s = ["Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"], 0
    for number in range(ROWS):
        at_s += 0 if rng.random() < 0.3 else rng.randint(1, 6)
        asked, answered = int(rng.lognormvariate(5.3, 0.8)) + 40, 0 if number % 20 == 11 else rng.randint(5, 300)
        model, log = rng.choice(("ChatGPT", "GPT-4")), rng.choice(("Conversation log", "API log"))
        lines.append(f"{at_s},{model},{asked},{answered},{asked + answered},{log}")
    return lines


def samples() -> dict[str, str]:
    """Each file's text by its name."""
    rows = mooncake_rows(Random(f"{SEED}/mooncake"))
    return {
        "conversations.json": json.dumps(conversations(Random(f"{SEED}/conversations")), indent=1) + "\n",
        "trace-mooncake.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "trace-burstgpt.csv": "\n".join(burst_rows(Random(f"{SEED}/burst"))) + "\n",
    }


def main() -> None:
    SAMPLES.mkdir(exist_ok=True)
    for name, text in samples().items():
        (SAMPLES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
