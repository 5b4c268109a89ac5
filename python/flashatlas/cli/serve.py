"""The command that serves a drive as a block device."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace as changed
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas._core import PowerLost
from flashatlas.cli.console import (
    EXIT_POWER,
    Terminated,
    command_line,
    err,
    finish,
    notes,
    replaced,
    say,
    show,
)
from flashatlas.cli.options import (
    Force,
    Json,
    Layers,
    Out,
    Quiet,
    Set,
    Title,
    try_outputs,
    with_layers,
    write_json,
)
from flashatlas.cli.runs import Drive, reported
from flashatlas.progress import Bars
from flashatlas.results.result import save_one
from flashatlas.serving.serve import Serving
from flashatlas.serving.serve import serve as begin


def serve(
    drive: Drive = "tiny",
    layers: Layers = None,
    set: Set = [],  # noqa: B006
    image: Annotated[
        Path | None,
        typer.Option(
            "--image",
            metavar="FILE",
            help="File of the drive's flash. A missing file is created; an existing image is "
            "mounted as after a power failure. Without an image, the flash is in memory only.",
        ),
    ] = None,
    precondition: Annotated[
        str,
        typer.Option(
            "--precondition",
            metavar="none|fill|steady|trace:FILE|checkpoint:FILE",
            help="Initial state of the drive; see `flashatlas run -h`. Not for drives with layers, "
            "nor for an image that exists. Reading a page that preconditioning wrote returns "
            "zeros.",
        ),
    ] = "none",
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="none|real|N",
            help="Time of replies. 'none': as soon as possible; 'real': after the latency of the "
            "simulated drive; N: after N times this latency.",
        ),
    ] = "none",
    client: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="COMMAND",
            help="Run this command with the shell, and end the server when the command ends. The "
            "variable `$uri` contains the address of the drive. With --nvme, `$traddr`, `$trsvcid` "
            "and `$nqn` contain the values for `nvme connect`.",
        ),
    ] = None,
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket",
            metavar="PATH",
            help="Path of the Unix socket; by default a path in a new folder.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="TCP port of 127.0.0.1, in place of a Unix socket."
        ),
    ] = None,
    tls: Annotated[
        Path | None,
        typer.Option(
            "--tls",
            metavar="DIR",
            help="Folder of certificates; if it is given, clients without TLS are refused.",
        ),
    ] = None,
    nvme: Annotated[
        str | None,
        typer.Option(
            "--nvme",
            metavar="tcp://ADDRESS:PORT",
            help="Serve an NVMe drive over TCP at this address, in place of NBD, such as "
            "tcp://127.0.0.1:4420; port 0 is any free port.",
        ),
    ] = None,
    nqn: Annotated[
        str | None,
        typer.Option(
            "--nqn",
            metavar="NQN",
            help="Name of the NVMe subsystem; by default a name that no other drive has, stored in "
            "the image if there is one.",
        ),
    ] = None,
    allow: Annotated[
        list[str],
        typer.Option(
            "--allow",
            metavar="HOSTNQN",
            help="Accept this NVMe host, and refuse all hosts that are not named; may be repeated.",
        ),
    ] = [],  # noqa: B006
    poll: Annotated[
        str | None,
        typer.Option(
            "--poll",
            metavar="TIME",
            help="Time after each NVMe command and each answer in which the server does not sleep "
            "(default: 200us with the time of the drive, 0s with --time none). The next command "
            "begins sooner, and the server takes a whole core meanwhile.",
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            "--threads", min=1, max=512, help="Largest number of requests at the same time."
        ),
    ] = 32,
    once: Annotated[
        bool, typer.Option("--once", help="End the server when the last client has disconnected.")
    ] = False,
    cut_after: Annotated[
        int | None,
        typer.Option(
            "--cut-after",
            min=0,
            metavar="N",
            help="Let the power fail in flash operation N + 1. Programs, erases, stores and fences "
            "count, also during the mount. Exit code 6.",
        ),
    ] = None,
    cut_at: Annotated[
        str | None,
        typer.Option(
            "--cut-at",
            metavar="TIME",
            help="Let the power fail in the first flash operation after this time of the server's "
            "clock, such as '2s'. SIGUSR1 lets the power fail in the next operation.",
        ),
    ] = None,
    cut_mode: Annotated[
        str,
        typer.Option(
            "--cut-mode",
            metavar="prefix|torn|subset",
            help="State that the power failure leaves in the image. 'prefix': the operation has no "
            "effect. 'torn': a program leaves an unreadable page, an erase leaves a block of such "
            "pages. 'subset': each lane loses its operations from a random point on, except "
            "operations that a FLUSH of a client or a layer made durable.",
        ),
    ] = "prefix",
    ignore_flush: Annotated[
        bool,
        typer.Option(
            "--ignore-flush",
            help="Answer FLUSH and FUA without carrying them out. This fault is deliberate: your "
            "tests should notice it.",
        ),
    ] = False,
    ignore_fua: Annotated[
        bool,
        typer.Option(
            "--ignore-fua",
            help="Answer FUA without carrying it out, as a deliberate fault. FLUSH is still "
            "carried out.",
        ),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Record the clients' requests as a trace in this file (.fatr), with times, FLUSH, "
            "FUA and trim.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT",
            help="Serve the drive's state over HTTP at this address, such as '127.0.0.1:9464'. "
            "Browsers show a page; Prometheus reads '/metrics'. `flashatlas top` shows the state "
            "in a terminal.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 1,
    quiet: Quiet = False,
    json_: Json = None,
    out_: Out = None,
    force: Force = False,
    title: Title = None,
) -> None:
    """Serve a drive to real programs, over NBD (nbdkit) or as an NVMe drive over TCP.

    The host layers, controller, scheme, map store and flash are the same as in a simulation, but
    pages contain real bytes. Every read is checked. At the end (Ctrl-C, SIGTERM, or the end of the
    command of --run), the write cache is flushed, the image is closed, and a run record is written.

    For example: `flashatlas serve -d tlc-small --run 'nbdinfo "$uri"'`

    or: `flashatlas serve -d tlc-small --precondition steady --image aged.img`

    or: `flashatlas serve -d tlc-small --nvme tcp://127.0.0.1:4420`

    or: `flashatlas serve -d tlc-small --image drive.img --run 'fio --name=a --ioengine=nbd
    --uri="$uri" --rw=randwrite --bs=4k --iodepth=16 --size=64M --verify=crc32c'`
    """
    try_outputs(out_, force, json_)
    serving = _begun(
        drive,
        quiet,
        set=with_layers(set, layers),
        image=image,
        precondition=precondition,
        time=time,
        socket=socket,
        port=port,
        tls=tls,
        nvme=nvme,
        nqn=nqn,
        allow=allow,
        poll=poll,
        threads=threads,
        once=once,
        cut_after=cut_after,
        cut_at=cut_at,
        cut_mode=cut_mode,
        ignore_flush=ignore_flush,
        ignore_fua=ignore_fua,
        record=record,
        metrics=metrics,
        seed=seed,
    )
    if serving.metrics_url:
        say(f"Metrics: {serving.metrics_url}")
    signal.signal(signal.SIGUSR1, lambda *_: serving.cut())
    for line in serving.damage:
        err.print(escape(line))
    status = _until_its_end(serving, client)
    try:
        result = changed(serving.stop(), command=command_line())
    except PowerLost as lost:
        err.print(str(lost))
        raise typer.Exit(EXIT_POWER) from None
    recorded = result.record["served"].get("recorded", {})
    if json_ != "-":
        show([result])
        notes([result])
        if "requests" in recorded:
            say(f"Trace: {record} ({recorded['requests']:,} requests)")
    write_json(json_, result.to_json())
    if out_:
        replaced(out_, save_one(result, out_))
        said = reported(out_, title or f"{result.name}, served", [result])
        if json_ != "-":
            say(said)
    finish([result])
    if status:
        raise InputError(f"--run: the command ended with status {status}")
    if "error" in recorded:
        raise InputError(f"--record: {recorded['path']}: {recorded['error']}")


def _begun(drive: str, quiet: bool, **options: Any) -> Serving:
    aging = options["precondition"] != "none"
    try:
        with Bars(["precondition"], enabled=aging and not quiet) as bars:
            return begin(drive, progress=lambda *at: bars.update(0, *at), **options)
    except PowerLost as lost:
        err.print(str(lost))
        raise typer.Exit(EXIT_POWER) from None


def _until_its_end(serving: Serving, client: str | None) -> int:
    """Wait until the client or the server ends; return the client's status, or 0."""
    try:
        if client is not None:
            environment = {**os.environ, **serving.variables}
            return subprocess.run(client, shell=True, env=environment, check=False).returncode
        say(f"Serving {serving.uri} (Ctrl-C ends it)")
        if "nqn" in serving.variables:
            say(
                "As root: nvme connect -t tcp -a {traddr} -s {trsvcid} -n {nqn}".format_map(
                    serving.variables
                )
            )
        serving.wait()
    except (KeyboardInterrupt, Terminated):
        pass  # the user has ended the command
    except BaseException:
        serving.kill()
        raise
    return 0
