"""`gate0 mock`: a server with known truth."""

from __future__ import annotations

from typing import Any

import click

USUAL = {"ttft_s": 0.05, "step_s": 0.02, "slots": 64}
"""What a real server is about like; presets, options and `--set` go over it, in this order."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", default=8000, show_default=True, help="0: any free one"
)
@click.option("--flavour", type=click.Choice(("vllm", "sglang", "llamacpp")), help="default: vllm")
@click.option("--ttft", "ttft_s", type=float, help=f"seconds to the first token; default: {USUAL['ttft_s']}")
@click.option("--step", "step_s", type=float, help=f"seconds a token, all streams together; default: {USUAL['step_s']}")
@click.option("--slots", type=int, help=f"requests at once, more wait; default: {USUAL['slots']}")
@click.option("--preset", metavar="NAME", help="one of the named servers that `--list` shows")
@click.option(
    "--set", "switches", multiple=True, metavar="KEY=VALUE", help="any switch that `--list` shows; repeatable"
)
@click.option("--list", "is_list", is_flag=True, help="show all switches and presets, and serve nothing")
def mock(*, host: str, port: int, preset: str | None, switches: tuple[str, ...], is_list: bool, **options: Any) -> int:
    """Serve until Ctrl-C: tokens at known times, a prefix cache of known size, and any fault a server can show."""
    from orchestrator.cli.printer import Printer
    from orchestrator.mock.presets import get_preset
    from orchestrator.mock.reading import with_texts, with_values
    from orchestrator.mock.server import serve
    from orchestrator.mock.settings import MockSettings

    printer = Printer()
    if is_list:
        _list(printer)
        return 0
    given = {name: value for name, value in options.items() if value is not None}
    settings = with_values(MockSettings(), USUAL | dict(get_preset(preset) if preset else {}) | given)
    settings = with_texts(settings, switches)
    told = f"first token {settings.ttft_s:g} s, {settings.step_s:g} s a token"
    try:
        serve(
            settings,
            host=host,
            port=port,
            on_ready=lambda url: printer.progress(f"mock {settings.flavour} on {url}, {told}"),
        )
    except KeyboardInterrupt:
        return 0
    printer.progress(f"dead at generation {settings.dies_at}, as `dies_at` says")
    return 0


def _list(printer: Any) -> None:
    from orchestrator.mock.presets import PRESETS
    from orchestrator.mock.reading import as_text
    from orchestrator.mock.settings import MockSettings, switches

    plain = MockSettings()
    printer.table(
        ("SWITCH", "DEFAULT", ""), [(n, as_text(USUAL.get(n, getattr(plain, n))), s) for n, s in switches().items()]
    )
    printer.answer("")
    printer.table(
        ("PRESET", "", "SWITCHES"),
        [(n, says, " ".join(f"{k}={as_text(v)}" for k, v in values.items())) for n, (says, values) in PRESETS.items()],
    )
