"""Drives as block devices over NBD or as NVMe drives over TCP, each served by a process of its own.

NBD is served by nbdkit with FlashAtlas's plugin (:data:`PLUGIN`), and NVMe by
:mod:`flashatlas.serving.door`.

>>> with flashatlas.serve("tlc-small", image="drive.img") as drive:   # doctest: +SKIP
...     subprocess.run(["nbdinfo", drive.uri], check=True)
>>> drive.result.waf                                                  # doctest: +SKIP
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from flashatlas import _core, parts
from flashatlas._core import DriveError, InputError, PowerLost
from flashatlas.inputs.drive import Drive, Settings
from flashatlas.inputs.trace import Progress
from flashatlas.results.result import Result
from flashatlas.serving import door, served
from flashatlas.serving import nvme as nvme_options
from flashatlas.serving.folder import LIVE, OURS, PID, POWER_LOST

if TYPE_CHECKING:
    from flashatlas.live.exporter import Exporter

PLUGIN = Path(__file__).parents[1] / "libflashatlas_nbdkit.so"
"""The plugin that nbdkit loads."""

MISSING = "nbdkit is not installed (Debian and Ubuntu: apt install nbdkit)"
WITHOUT_PLUGIN = (
    f"{PLUGIN.name} does not exist: it comes with wheels, and with the build from a source tree "
    "(`make build`), but not with a source distribution"
)

POLL = 200e-6
"""Seconds after a command in which an NVMe server with the time of the drive does not sleep: longer
than a read takes, and shorter than a program."""

POLL_MAX = 1.0
"""Longest time in which an NVMe server does not sleep, in seconds."""

MALLOC = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}
"""Settings for glibc's allocator; the environment can override them.

Many threads allocate and free mapping units. If each thread had its own arena, the kernel would map
and clear pages all the time.
"""

PATIENCE_S = 2
"""Seconds that connected clients have at the end before they are disconnected."""

READY_S = 600
"""Seconds within which a server must be ready; the limit is high because images are read whole."""


class Serving:
    """A drive that is served; a context manager.

    Attributes:
        uri: The URI at which clients reach the drive, over NBD or over NVMe.
        variables: Variables for the environment of a client: the URI and, of an NVMe drive, its
            parts ``traddr``, ``trsvcid`` and ``nqn``.
        result: The result, as from :func:`flashatlas.run`; ``None`` until the server has ended.
        damage: A line for each part of the image that could not be read when it was opened.
        metrics_url: The URL of the metrics, if they were asked for.

    """

    def __init__(
        self, process: subprocess.Popen[bytes], folder: Path, uri: str, image: str
    ) -> None:
        """Take over a server that was started; no other server uses ``folder``."""
        self.uri = uri
        self.variables = {"uri": uri}
        self.result: Result | None = None
        self.damage: list[str] = []
        self._process = process
        self._folder = folder
        self._begin = time.perf_counter()
        self._image = image
        self._exporter: Exporter | None = None
        self.metrics_url = ""

    def __enter__(self) -> Serving:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    @property
    def pid(self) -> int:
        """The process number of the server."""
        return self._process.pid

    def wait(self) -> None:
        """Wait until the server ends by itself or is interrupted."""
        self._process.wait()

    def stop(self) -> Result:
        """End the server (it flushes the cache and closes the image), and return the result.

        Clients that are still connected after two seconds are disconnected.

        Raises:
            PowerLost: The power of the drive had failed.
            DriveError: The drive could not continue, or the server was killed.

        """
        if self.result is not None:
            return self.result
        if not self._folder.exists():
            raise DriveError("the server was killed: there is no result")
        self._close_exporter()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:  # nbdkit waits for its clients, which may be idle
            self._process.send_signal(signal.SIGUSR2)
            self._process.wait()
        said = self._said()
        record = self._folder / "record.json"
        found = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else None
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._process.returncode == POWER_LOST:
            raise PowerLost(
                f"the power failed; {self._image} is in the state that the failure left"
            )
        if found is None:
            raise DriveError(said or f"the server ended with status {self._process.returncode}")
        self.result = served.result(found, time.perf_counter() - self._begin)
        return self.result

    def cut(self) -> None:
        """Let the power fail in the next flash operation (SIGUSR1 to the server)."""
        self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """End the server as ``kill -9`` does: nothing is flushed, and there is no result."""
        self._close_exporter()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def answer(self, at: str) -> None:
        """Serve the metrics of the drive at ``HOST:PORT``.

        Raises:
            InputError: The address cannot be used.

        """
        # imported on request only, because it imports an HTTP server
        from flashatlas.live.exporter import Exporter  # noqa: PLC0415

        self._exporter = Exporter(at, self._seen)
        self.metrics_url = self._exporter.url

    def _seen(self) -> bytes:
        if self._process.poll() is not None:
            raise OSError("the server has ended")
        return (self._folder / LIVE).read_bytes()

    def _close_exporter(self) -> None:
        if self._exporter is not None:
            self._exporter.close()
            self._exporter = None

    def _said(self) -> str:
        lines = (self._folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(line.removeprefix("nbdkit: ").removeprefix("error: ") for line in lines)


def serve(
    drive: str | os.PathLike[str] | Drive = "tiny",
    *,
    set: Settings = (),
    image: str | os.PathLike[str] | None = None,
    time: str | float = "none",
    socket: str | os.PathLike[str] | None = None,
    port: int | None = None,
    tls: str | os.PathLike[str] | None = None,
    nvme: str | None = None,
    nqn: str | None = None,
    allow: Sequence[str] = (),
    poll: str | float | None = None,
    threads: int = 32,
    once: bool = False,
    cut_after: int | None = None,
    cut_at: str | float | None = None,
    cut_mode: str = "prefix",
    ignore_flush: bool = False,
    ignore_fua: bool = False,
    record: str | os.PathLike[str] | None = None,
    metrics: str | None = None,
    precondition: str = "none",
    progress: Progress | None = None,
    seed: int = 1,
) -> Serving:
    """Serve a drive to real programs, as a block device over NBD or as an NVMe drive over TCP.

    Args:
        drive: Preset, path of a TOML file, or a :class:`Drive`.
        set: Parameters of the drive to change.
        image: File of the drive's flash. A missing file is created; an existing image is mounted
            with the scheme's own recovery. Without an image, the flash is in memory only.
        time: Time of replies. ``none``: as soon as possible. ``real``: after the latency of the
            simulated drive. A number: after this latency multiplied by the number.
        socket: Path of the Unix socket; by default a socket in a new folder of mode 0700.
        port: TCP port of 127.0.0.1 to serve on, in place of a Unix socket.
        tls: Folder of certificates (``nbdkit-tls``); with it, clients without TLS are refused.
        nvme: Address ``tcp://ADDRESS:PORT`` of an NVMe drive, in place of NBD; port 0 is any free
            port. Others can reach an address that is not of this machine's loopback: there is no
            password and no TLS.
        nqn: Name of the NVMe subsystem; by default a name that no other drive has,
            stored in the image if there is one.
        allow: Names of the NVMe hosts that may connect; by default every host may.
        poll: Seconds (or a time such as ``200us``) after each command and each answer in which the
            server of an NVMe drive does not sleep. The next command then begins sooner, and the
            server takes a whole core meanwhile. By default 200 us with the time of the drive, and 0
            with the time ``none``.
        threads: Largest number of requests that are carried out at the same time.
        once: End the server when the last client has disconnected.
        cut_after: Number of flash operations before the operation in which the power fails;
            operations of the mount count.
        cut_at: Seconds (or a time such as ``500ms``) after which the power fails, in the next flash
            operation.
        cut_mode: State that the power failure leaves in an image. ``prefix``: the operation in
            which the power fails has no effect. ``torn``: a program leaves an unreadable page, an
            erase leaves a block of unreadable pages. ``subset``: each lane loses its operations
            from a random point on, except operations that a FLUSH of a client or a layer made
            durable.
        ignore_flush: Answer FLUSH and FUA without carrying them out. This fault is deliberate:
            tests should notice it.
        ignore_fua: Answer FUA without carrying it out, as a deliberate fault. FLUSH is still
            carried out.
        record: File (``.fatr``) for a trace of the clients' requests, with times, FLUSH, FUA and
            trim. Runs can replay this trace. The file appears when the server has ended, or when
            the power of the drive has failed.
        metrics: ``HOST:PORT`` at which the state of the drive is served over HTTP: a page,
            Prometheus' text (``/metrics``) and JSON. Nothing can be changed there.
        precondition: Initial state of a drive without layers, in memory or in a new image:
            ``none``, ``fill``, ``steady``, ``trace:FILE`` or ``checkpoint:FILE``, as for
            :func:`flashatlas.run`. The pages that preconditioning wrote read as zeros.
        progress: Called while the drive is preconditioned; see :func:`flashatlas.run`.
        seed: Seed of everything random.

    Raises:
        InputError: An option is bad; no existing image was changed, and no new image was left.

    """
    _check_door(socket=socket, port=port, tls=tls, nvme=nvme, nqn=nqn, allow=allow, poll=poll)
    if record is not None and Path(record).suffix != ".fatr":
        raise InputError(f"record: {os.fspath(record)}: the name of a recording ends in .fatr")
    told = served.plan(drive, set, image, cut_mode, ignore_flush, ignore_fua, seed, precondition)
    pace = "none" if time == "none" else {"real": _slower(time)}
    libraries = _libraries(told)
    seconds = None if cut_at is None else _seconds("cut_at", cut_at)
    awake = _awake(poll, pace)
    controller = None if nvme is None else nvme_options.spec(nvme, nqn, allow, awake, threads)
    folder = Path(tempfile.mkdtemp(prefix="flashatlas-serve-"))  # mode 0700
    try:
        told = served.aged(told, drive, set, folder, progress)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    path = Path(socket) if socket is not None else folder / "socket"
    told |= {
        "plugins": libraries,
        "time": pace,
        "cut_after": cut_after,
        "cut_at": seconds,
        "trace": None if record is None else os.path.abspath(record),
        "record": str(folder / "record.json"),
        "live": None if metrics is None else str(folder / LIVE),
        "nvme": controller,
        "once": once,
    }
    plan = folder / "plan.json"
    plan.write_text(json.dumps(told), encoding="utf-8")
    if controller is not None:
        command = [sys.executable, "-c", door.PROGRAM, str(plan)]
    else:
        at = ["--ipaddr", "127.0.0.1", "--port", str(port)] if port else ["--unix", str(path)]
        command = _nbdkit(plan, at, tls, threads, once)
    new_image = None if image is None or os.path.lexists(image) else Path(image)
    with (folder / "log").open("wb") as log:
        # in its own session, the server gets no Ctrl-C: the caller gets it, and ends the server
        environment = {**MALLOC, **os.environ}
        process = subprocess.Popen(command, env=environment, stderr=log, start_new_session=True)
    scheme = "nbds" if tls is not None else "nbd"
    uri = f"{scheme}://127.0.0.1:{port}" if port else f"{scheme}+unix:///?socket={path}"
    serving = Serving(process, folder, uri, str(image) if image else "the drive")
    try:
        if metrics is not None:
            serving.answer(metrics)
        _wait_until_ready(serving)
    except PowerLost:
        serving.kill()
        raise
    except BaseException:
        serving.kill()
        if new_image is not None:
            _remove_unused(new_image)
        raise
    if controller is not None:
        place = nvme_options.Place.of(folder)
        serving.uri, serving.variables = place.uri, place.variables
    serving.damage = [line for line in serving._said().splitlines() if line.startswith(OURS)]
    return serving


def _nbdkit(
    plan: Path, at: list[str], tls: str | os.PathLike[str] | None, threads: int, once: bool
) -> list[str]:
    """Return the command that serves a plan over NBD."""
    command = ["nbdkit", "--foreground", "--pidfile", str(plan.parent / PID)]
    command += ["--threads", str(threads), *at]
    command += ["--tls", "require", f"--tls-certificates={tls}"] if tls is not None else []
    command += ["--filter", "exitlast"] if once else []
    return [*command, str(PLUGIN), f"plan={plan}"]


def _check_door(
    *,
    nvme: str | None,
    nqn: str | None,
    allow: Sequence[str],
    poll: str | float | None,
    **nbd: object | None,
) -> None:
    """Check that the options belong to one door, and that the door is there."""
    beside = [name for name, given in nbd.items() if given is not None]
    if nvme is not None:
        if beside:
            raise _core.about(
                beside[0],
                "this option is for NBD, but ‹nvme› serves an NVMe drive: give one of the two",
            )
        return
    for name, given in (("nqn", nqn), ("allow", allow or None), ("poll", poll)):
        if given is not None:
            raise _core.about(
                name, "this option is for an NVMe drive: also give ‹nvme=tcp://127.0.0.1:4420›"
            )
    if shutil.which("nbdkit") is None:
        raise InputError(MISSING)
    if not PLUGIN.is_file():
        raise InputError(WITHOUT_PLUGIN)
    if nbd["socket"] is not None and nbd["port"] is not None:
        raise InputError("socket and port: give one of the two")


def _remove_unused(image: Path) -> None:
    """Remove the new image of a server that never started, unless another server has it open."""
    with suppress(OSError), image.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if another server has it open
        image.unlink()


def _libraries(told: dict[str, Any]) -> list[str]:
    """Return the shared libraries that contain the added parts of the drive."""
    if not parts.added():
        return []
    asked = {key: told[key] for key in ("drive", "drive_toml", "set", "seed")}
    asked["workload"] = "uniform:requests=1"
    found = []
    for part in json.loads(_core.planned(json.dumps(asked)))["parts"]:
        library = parts.library_of(part)
        if library is None:
            raise InputError(
                f"{part['kind']} `{part['name']}` of {part['distribution']} is not from a shared "
                "library: nbdkit cannot load it; flashatlas.Device serves it in this process"
            )
        found.append(os.path.abspath(library))
    return list(dict.fromkeys(found))


def _seconds(name: str, given: str | float) -> float:
    if isinstance(given, str) and re.fullmatch(r"[\d.]+\s*(ns|us|ms|s|min|h)", given):
        return float(_core.quantity(given)) / 1e12
    if not isinstance(given, str) and given >= 0:
        return float(given)
    raise InputError(f"{name}: `{given}` is not a time such as 500ms or 2s")


def _awake(poll: str | float | None, pace: str | dict[str, float]) -> float:
    """Return the seconds in which an NVMe server does not sleep."""
    if poll is None:
        return 0 if pace == "none" else POLL
    seconds = _seconds("poll", poll)
    if seconds > POLL_MAX:
        raise InputError(f"poll: `{poll}` is too long; the longest time is {POLL_MAX:g} s")
    return seconds


def _slower(text: str | float) -> float:
    try:
        slower = 1.0 if text == "real" else float(str(text).removeprefix("real").lstrip("x×"))
    except ValueError:
        slower = 0.0
    if not 0 < slower <= 1e6:
        raise InputError(f"time: `{text}` is not known: give none, real, or N (N times slower)")
    return slower


def _wait_until_ready(serving: Serving) -> None:
    pid, live = serving._folder / PID, serving._folder / LIVE
    end = time.monotonic() + READY_S

    def ready() -> bool:
        answers = pid.is_file() and pid.read_bytes().endswith(b"\n")
        return answers and (not serving.metrics_url or live.is_file())

    while not ready():
        if serving._process.poll() == POWER_LOST:
            raise PowerLost("the power failed while the drive was mounted")
        if serving._process.poll() is not None or time.monotonic() > end:
            raise InputError(serving._said() or "the server did not start")
        time.sleep(0.005)
