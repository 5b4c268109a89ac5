"""Commands that put a real kernel's file system on a served drive: ``mount``, ``pull-plug``."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from flashatlas import DriveError, InputError, plug
from flashatlas.cli.console import EXIT_VIOLATION, Terminated, out, say, show
from flashatlas.cli.options import Json, Layers, Set, with_layers, write_json
from flashatlas.cli.runs import Drive
from flashatlas.plug import Mounted, Pull
from flashatlas.serving.serve import serve


def mount(
    folder: Annotated[Path, typer.Argument(help="An existing folder as the mount point.")],
    drive: Drive = "tiny",
    layers: Layers = None,
    set: Set = [],  # noqa: B006
    image: Annotated[
        Path | None,
        typer.Option(
            "--image", metavar="FILE", help="File of the drive's flash; see `flashatlas serve -h`."
        ),
    ] = None,
    mkfs: Annotated[
        bool,
        typer.Option("--mkfs", help="Make an ext4 file system first. THE OLD CONTENT IS LOST."),
    ] = False,
    client: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="COMMAND",
            help="Run this command with the shell, and unmount when the command ends.",
        ),
    ] = None,
) -> None:
    """Mount ext4 on a served drive, through nbdfuse and a loop device (root, Linux).

    Ctrl-C, or the end of the command of --run, unmounts the file system and ends the server.

    For example: `flashatlas mount /mnt -d tlc-small --image drive.img --mkfs`
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    if mkfs is False and (image is None or not image.is_file()):
        raise InputError("the drive has no file system yet: make one with --mkfs")
    if (why := plug.missing()) is not None:
        raise InputError(f"mount: {why}")
    served = serve(drive, set=with_layers(set, layers), image=image)
    with served, Mounted(served, folder, make=mkfs) as mounted:
        say(f"{mounted.device} is mounted in {folder} (Ctrl-C unmounts it)")
        _until_its_end(client)
        while not _is_unmounted(mounted):
            _until_its_end(None)
    if served.result is not None:
        show([served.result])


def _is_unmounted(mounted: Mounted) -> bool:
    """Unmount the file system; return ``False`` if somebody still uses it."""
    try:
        mounted.unmount()
    except DriveError as error:
        say(f"{error}; the drive is still served; Ctrl-C tries again")
        return False
    return True


def _until_its_end(client: str | None) -> None:
    try:
        if client is not None:
            subprocess.run(client, shell=True, check=False)
        else:
            signal.pause()
    except (KeyboardInterrupt, Terminated):
        pass  # the user has ended the command


def pull_plug(
    drive: Drive = "tlc-small",
    layers: Layers = None,
    set: Set = [],  # noqa: B006
    client: Annotated[
        str,
        typer.Option(
            "--client",
            metavar="|".join(client.name for client in plug.CLIENTS),
            help="Client program that writes numbered items and makes them durable: "
            + "; ".join(each.summary for each in plug.CLIENTS)
            + ".",
        ),
    ] = "records",
    times: Annotated[
        int, typer.Option("--times", min=1, help="Number of times that the plug is pulled.")
    ] = 5,
    within: Annotated[
        int,
        typer.Option(
            "--within", min=2, help="The largest number of flash operations before the power fails."
        ),
    ] = 2000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 1,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="|".join(plug.KERNELS),
            help="The kernel whose ext4 is used. running: the kernel of this machine (root, "
            "Linux). guest: the kernel of a guest in QEMU, with the drive as its virtual disk. "
            "guest-nbd: the kernel of a guest in QEMU, which reaches the drive through its own NBD "
            "driver and sends writes with FUA. guest-nvme: the same with the guest's NVMe driver, "
            "over TCP. A guest is ended when the drive's power fails.",
        ),
    ] = "running",
    accel: Annotated[
        str,
        typer.Option(
            "--accel",
            metavar="tcg|kvm",
            help="The accelerator with which QEMU runs a guest: tcg (emulation), or kvm if the "
            "machine has it.",
        ),
    ] = "tcg",
    ignore_flush: Annotated[
        bool,
        typer.Option(
            "--ignore-flush",
            help="Let the drive ignore FLUSH and FUA. This fault is deliberate: the command must "
            "then find lost items.",
        ),
    ] = False,
    ignore_fua: Annotated[
        bool,
        typer.Option(
            "--ignore-fua",
            help="Let the drive ignore FUA. This fault is deliberate: with --kernel guest-nbd "
            "or guest-nvme, the command must then find lost items.",
        ),
    ] = False,
    json_: Json = None,
) -> None:
    """Pull the plug of a drive under a real kernel's ext4, and check every promise.

    A client program makes numbered items durable: records with fsync, or transactions of SQLite,
    PostgreSQL or RocksDB. The power fails at a random flash operation. Then the drive and ext4
    recover, and a database recovers, too. Every acknowledged item must exist and be complete, the
    sums of a database must be right, and e2fsck must find no error. Exit code 4 if anything is
    lost.

    For example: `flashatlas pull-plug -d tlc-small --set map.store=demand --times 10`
    """
    with_all = with_layers(set, layers)
    pulls, result = plug.pull(
        drive,
        set=with_all,
        client=client,
        times=times,
        seed=seed,
        within=within,
        kernel=kernel,
        accel=accel,
        ignore_flush=ignore_flush,
        ignore_fua=ignore_fua,
        progress=_shown(json_),
    )
    write_json(json_, json.dumps([asdict(pull) for pull in pulls], indent=2))
    wrong = [pull for pull in pulls if pull.lost or pull.check]
    if json_ != "-":
        table = Table(box=None)
        for column in ("power failed after", "FUA writes", "acknowledged", "lost", "found wrong"):
            table.add_column(column, justify="right")
        for pull in pulls:
            found = pull.check.splitlines()[0] if pull.check else "nothing"
            numbers = (pull.after, pull.fua_writes, pull.acknowledged, pull.lost)
            table.add_row(*(f"{number:,}" for number in numbers), found)
        out.print(table)
    if wrong or result.violations:
        raise typer.Exit(EXIT_VIOLATION)


def _shown(json_: str | None) -> Callable[[Pull], None]:
    def tell(pull: Pull) -> None:
        if json_ != "-":
            say(f"after {pull.after:,}: {pull.acknowledged:,} acknowledged, {pull.lost} lost")

    return tell
