"""`gate0 mock`: a server with known truth."""

from __future__ import annotations

import click


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True)
@click.option("--flavour", type=click.Choice(("vllm", "sglang", "llamacpp")), default="vllm", show_default=True)
@click.option("--ttft", "ttft_s", default=0.05, show_default=True, help="seconds to the first token")
@click.option("--step", "step_s", default=0.02, show_default=True, help="seconds a token, all streams together")
@click.option("--slots", default=64, show_default=True, help="requests at once; more wait")
def mock(*, host: str, port: int, flavour: str, ttft_s: float, step_s: float, slots: int) -> int:
    """Serve until Ctrl-C: tokens at known times, a prefix cache of known size."""
    from orchestrator.cli.printer import Printer
    from orchestrator.mock.server import serve
    from orchestrator.mock.settings import Flavour, MockSettings

    Printer().progress(f"mock {flavour} on http://{host}:{port}/v1, first token {ttft_s} s, {step_s} s a token")
    serve(MockSettings(flavour=Flavour(flavour), ttft_s=ttft_s, step_s=step_s, slots=slots), host=host, port=port)
    return 0
