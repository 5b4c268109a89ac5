"""Commands that compute published results again."""

from __future__ import annotations

from typing import Annotated

import typer

from flashatlas import InputError, tables
from flashatlas.cli.console import out
from flashatlas.cli.options import Jobs, Quiet
from flashatlas.progress import Bars
from flashatlas.theory import MODELS

app = typer.Typer(no_args_is_help=True, help="Compute published results again, and show the deviation.")


@app.command("theory")
def reproduce_theory(
    blocks: Annotated[int, typer.Option("--blocks", min=16, help="Blocks of the simulated drives.")] = 2000,
    drive_writes: Annotated[
        int, typer.Option("--drive-writes", min=2, help="Writes of the whole drive; the second half is measured.")
    ] = 20,
    rho: Annotated[list[float], typer.Option("--rho", help="Utilisations.")] = [0.7, 0.8, 0.9],  # noqa: B006
    b: Annotated[list[int], typer.Option("--b", help="Pages of a block.")] = [32, 64, 128],  # noqa: B006
    policy: Annotated[list[str], typer.Option("--policy", help=f"One of: {', '.join(MODELS)}; all by default.")] = [],  # noqa: B006
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Write amplification under uniform random writes: models beside simulation, with the error of each."""
    from flashatlas import reproduce  # noqa: PLC0415

    chosen = policy or list(MODELS)
    for name in chosen:
        if name not in MODELS:
            raise InputError(f"policy `{name}` has no model (allowed: {', '.join(MODELS)})")
    if any(not 0 < r < 1 for r in rho):
        raise InputError("--rho: a utilisation lies between 0 and 1")
    labels = [f"{p} ρ={r} b={n}" for p in chosen for r in rho for n in b]
    with Bars(labels, enabled=not quiet) as bars:
        points = reproduce.theory(
            rho, b, chosen, blocks=blocks, drive_writes=drive_writes, jobs=jobs, progress=bars.update
        )
    rows = [
        (p.policy, f"{p.rho:g}", str(p.b), f"{p.theory:.4f}", f"{p.simulated:.4f}", f"{100 * p.error:+.2f} %")
        for p in points
    ]
    out.print(tables.listing(["policy", "ρ", "b", "theory", "simulated", "error"], rows))
    worst = max(points, key=lambda p: abs(p.error))
    out.print(
        f"largest error: {100 * worst.error:+.2f} % ({worst.policy}, ρ = {worst.rho:g}, b = {worst.b})", highlight=False
    )
