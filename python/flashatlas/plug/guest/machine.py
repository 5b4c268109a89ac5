"""QEMU with a served drive as a guest's disk, and the guest as a kernel for clients."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from flashatlas._core import DriveError, InputError
from flashatlas.plug.client import Client
from flashatlas.plug.guest import init, root
from flashatlas.plug.kernel import Kernel
from flashatlas.serving.serve import Serving

ATTACHED = ("virtio-blk", "nbd", "nvme")
"""Ways to attach the drive to the guest; ``nvme`` is for drives that are served over NVMe.

QEMU's virtual disk sends FLUSH and no FUA; the NBD and NVMe drivers of the guest's own kernel send
both.
"""

SEND_FUA = ("nbd", "nvme")
"""Ways in which writes with FUA reach the drive."""

HOST = "10.0.2.2"
"""Address of 127.0.0.1 of this machine for a guest on QEMU's network."""

PATIENCE_S = 600
"""Seconds after which a guest counts as stopped."""


class Machine:
    """A guest that is switched on; as a context manager it pulls the guest's plug at the end."""

    def __init__(
        self,
        drive: Serving,
        attach: str,
        accel: str = "tcg",
        kind: str = "small",
        folder: Path | None = None,
    ) -> None:
        """Switch a guest on.

        Args:
            drive: The drive.
            attach: The way in which it is attached, one of :data:`ATTACHED`.
            accel: The way in which QEMU runs the guest, ``tcg`` or ``kvm``.
            kind: The root, one of ``root.KINDS``.
            folder: A folder that the guest finds as a tar archive, its last virtual disk.

        Raises:
            InputError: No guest can run here, or the drive is not served in this way.

        """
        if (why := root.missing()) is not None:
            raise InputError(f"guest: {why}")
        if (attach == "nvme") != ("nqn" in drive.variables):
            raise InputError(f"guest: `{attach}` does not attach {drive.uri}")
        self.attach = attach
        self._address: dict[str, str] = {}
        if attach == "nvme":
            named = {name: drive.variables[name] for name in ("trsvcid", "nqn")}
            self._address = {"traddr": HOST, **named}
        made = root.root(kind)
        self._folder = tempfile.TemporaryDirectory(prefix="flashatlas-guest-")
        self._console = Path(self._folder.name) / "console"
        disk = f"file={drive.uri},format=raw,if=none,id=d,discard=unmap,werror=report,rerror=report"
        socket = parse_qs(urlsplit(drive.uri).query).get("socket", [""])[0]
        attached = {
            "virtio-blk": ["-drive", disk, "-device", "virtio-blk-pci,drive=d"],
            # the guest's network has one address, which leads to the server's socket
            "nbd": [
                *("-chardev", f"socket,id=s,path={socket}"),
                *("-netdev", "user,id=n,restrict=on,guestfwd=tcp:10.0.2.100:10809-chardev:s"),
                *("-device", "virtio-net-pci,netdev=n,romfile="),
            ],
            # the guest's kernel has a connection for each queue
            "nvme": ["-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n,romfile="],
        }
        if folder is not None:
            archive = f"{self._folder.name}/folder.tar"
            root.do("bsdtar", "-c", "-f", archive, "-C", str(folder.parent), folder.name)
            attached[attach] += ["-drive", f"file={archive},format=raw,if=virtio,readonly=on"]
        self._qemu = subprocess.Popen(
            [
                "qemu-system-x86_64",
                *("-accel", accel, "-machine", "q35", "-smp", "1", "-m", root.KINDS[kind].memory),
                *("-nodefaults", "-display", "none", "-no-reboot"),
                *("-serial", f"file:{self._console}"),
                *("-kernel", str(made / "kernel"), "-initrd", str(made / "root.cpio")),
                *("-append", "console=ttyS0 panic=-1 quiet"),
                *("-device", "virtio-serial-pci", "-chardev", "stdio,id=c,signal=off"),
                *("-device", "virtserialport,chardev=c"),
                *attached[attach],
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._timer = threading.Timer(PATIENCE_S, self._qemu.kill)
        self._timer.start()

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        for pipe in (self._qemu.stdin, self._qemu.stdout, self._qemu.stderr):
            assert pipe is not None
            pipe.close()
        self._folder.cleanup()

    def kill(self) -> None:
        """Pull the guest's plug."""
        self._timer.cancel()
        self._qemu.kill()
        self._qemu.wait()

    def answers(self, do: str, **asked: Any) -> Iterator[dict[str, Any]]:
        """Yield the guest's answers until it is done, or its plug is pulled.

        Raises:
            DriveError: The guest could not carry out the request.

        """
        assert self._qemu.stdin is not None and self._qemu.stdout is not None
        asked |= {"do": do, "attach": self.attach, "address": self._address}
        self._qemu.stdin.write(json.dumps(asked).encode() + b"\n")
        self._qemu.stdin.flush()
        for line in self._qemu.stdout:
            if not line.endswith(b"\n"):
                return  # the plug was pulled in the middle of an answer
            answer = json.loads(line)
            if "error" in answer:
                raise DriveError(f"guest: {answer['error']}")
            yield answer
            if "end" in answer:
                return

    def ask(self, do: str, **asked: Any) -> dict[str, Any]:
        """Return the guest's final answer.

        Raises:
            DriveError: The guest could not carry out the request, or has stopped.

        """
        for answer in self.answers(do, **asked):
            if "end" in answer:
                end: dict[str, Any] = answer["end"]
                return end
        raise DriveError(f"guest: the guest has stopped: {self._last_words()}")

    def _last_words(self) -> str:
        assert self._qemu.stderr is not None
        self.kill()
        said = self._qemu.stderr.read().decode(errors="replace").splitlines()
        if self._console.is_file():
            said += self._console.read_text(encoding="utf-8", errors="replace").splitlines()
        # lines of the kernel begin with a time; the last line of a program gives the reason
        words = [line for line in said if line.strip() and not line.startswith("[")]
        return words[-1] if words else "the guest printed nothing"


class Guest(Kernel):
    """A separate kernel, which is killed when the drive's power fails."""

    def __init__(self, attach: str = "virtio-blk", accel: str = "tcg") -> None:
        """Take ``attach``, one of :data:`ATTACHED`, and ``accel``, ``tcg`` or ``kvm``."""
        self.attach = attach
        self.accel = accel
        self.nvme = "tcp://127.0.0.1:0" if attach == "nvme" else None
        self.sends_fua = attach in SEND_FUA

    def missing(self) -> str | None:
        """Return why no guest can run here, or ``None``."""
        return root.missing()

    def prepare(self, drive: Serving, client: Client) -> None:
        """Make a file system with the client's files."""
        with self._on(drive, client) as machine:
            machine.ask("prepare", client=client.name)

    def write(
        self,
        drive: Serving,
        client: Client,
        first: int,
        rng: random.Random,
        acknowledge: Callable[[int], None],
    ) -> None:
        """Let the client write until the power of the drive and of the guest fails."""
        with self._on(drive, client) as machine:
            threading.Thread(target=_die_together, args=(drive, machine), daemon=True).start()
            try:
                asked = {"client": client.name, "first": first, "seed": rng.randrange(1 << 32)}
                for answer in machine.answers("write", **asked):
                    if "acknowledged" in answer:
                        acknowledge(answer["acknowledged"])
            except DriveError:
                return  # the power failed in the mount

    def found(self, drive: Serving, client: Client) -> tuple[set[int], str]:
        """Return the numbers that are there, and the faults that the client and e2fsck find."""
        with self._on(drive, client) as machine:
            end = machine.ask("found", client=client.name)
        return set(end["there"]), end["wrong"]

    def _on(self, drive: Serving, client: Client) -> Machine:
        if client.name not in init.CLIENTS:
            known = ", ".join(init.CLIENTS)
            raise InputError(f"client: `{client.name}` cannot run in a guest (allowed: {known})")
        return Machine(drive, self.attach, self.accel)


def _die_together(drive: Serving, machine: Machine) -> None:
    drive.wait()
    machine.kill()
