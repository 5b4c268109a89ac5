"""Power failures in every flash operation of a load, and a check of the drive after each.

This is the common part of `sqlite_cuts.py` and `littlefs_cuts.py`. A drive in this process is full
of other data, and a load of numbered transactions runs on it. The power fails in each flash
operation in turn, and on request also in operations of the recovery.
"""

from __future__ import annotations

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from flashatlas import Device, PowerLost


def needed(module: str, package: str) -> Any:
    """Return a module that an example needs, or end with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        print(f"this example needs {package}: pip install {package}", file=sys.stderr)
        sys.exit(2)


@dataclass
class EveryCut(ABC):
    """Power failures during a load, and the findings after them."""

    count: int = 12
    """Transactions of the load."""
    one_in: int = 1
    recoveries: int = 0
    """Number of operations of each recovery in which the power fails once more."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of :class:`flashatlas.Device`."""
    operations: int = 0
    erases: int = 0
    """Erases of the drive while it is filled and during the load."""
    cuts: int = 0
    in_recovery: int = 0
    acknowledged: int = 0
    """Transactions that had been acknowledged, over all cuts."""
    wrong: list[str] = field(default_factory=list)

    @abstractmethod
    def load(self, drive: Device) -> int:
        """Run the load until it ends or the power fails.

        Returns:
            The number of the last acknowledged transaction; 0 if only the load's preparation was
                        acknowledged, -1 if nothing was acknowledged.

        """

    @abstractmethod
    def there(self, drive: Device) -> set[int]:
        """Recover, and return each number of transactions that explains the content.

        Raises:
            AssertionError: The content is damaged, or matches no number of transactions.

        """

    def examine(self, drive: Device, acknowledged: int, said: str) -> int:
        """Power on and check the drive; return the number of flash operations of both."""
        drive.power_on()
        try:
            there = self.there(drive)
        except AssertionError as error:
            self.wrong.append(f"{said}: {error}")
            return 0
        if not there & {acknowledged, acknowledged + 1}:
            self.wrong.append(f"{said}: {acknowledged} were acknowledged, {there} are there")
        return drive.operations

    def full(self) -> Device:
        """Return a drive that is full of other data, so that it must collect."""
        drive = Device(**self.options)
        unit = drive.unit_bytes
        for at in range(0, drive.capacity_bytes, unit):
            drive.write(at, b"\xff" * unit)
        drive.flush()
        return drive

    def cut_at(self, operation: int) -> tuple[Device, int]:
        """Return a drive whose power failed in an operation of the load."""
        drive = self.full()
        drive.cut(after=operation)
        return drive, self.load(drive)

    def run(self) -> EveryCut:
        """Let the power fail in each operation, or in every ``one_in``-th operation."""
        drive = self.full()
        before = drive.operations
        assert self.load(drive) == self.count
        self.operations = drive.operations - before
        self.erases = sum(drive.power_off().record["nand"]["erases"].values())
        for operation in range(0, self.operations, self.one_in):
            drive, acknowledged = self.cut_at(operation)
            self.cuts += 1
            self.acknowledged += acknowledged + 1
            took = self.examine(drive, acknowledged, f"operation {operation}")
            every = max(1, took // max(self.recoveries, 1))
            for second in range(0, took if self.recoveries else 0, every):
                drive, acknowledged = self.cut_at(operation)
                with suppress(PowerLost, AssertionError):
                    drive.power_on(cut_after=second)
                    self.there(drive)
                self.in_recovery += 1
                self.examine(drive, acknowledged, f"operation {operation}, then {second}")
        return self


def carry_out(cuts: type[EveryCut], about: str, choices: Mapping[str, Sequence[str]] = {}) -> None:
    """Parse the command line, let the power fail, and print the lost transactions."""
    parser = argparse.ArgumentParser(description=about.partition("\n\n")[0])
    parser.add_argument("--drive", default="tiny")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--transactions", type=int, default=12)
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--recoveries", type=int, default=0)
    parser.add_argument("--torn", action="store_true", help="leave pages that cannot be read")
    parser.add_argument("--ignore-flush", action="store_true", help="a drive that lies")
    for name, values in choices.items():
        parser.add_argument(f"--{name}", choices=values, default=values[0])
    given = parser.parse_args()
    options = {
        "drive": given.drive,
        "set": given.set,
        "cut_mode": "torn" if given.torn else "prefix",
        "ignore_flush": given.ignore_flush,
    }
    chosen = {name: getattr(given, name) for name in choices}
    done = cuts(given.transactions, given.one_in, given.recoveries, options, **chosen).run()
    print(
        f"{done.operations} operations and {done.erases} erases, power cut in {done.cuts} of them "
        f"and {done.in_recovery} times while it recovered; {done.acknowledged} transactions "
        "acknowledged"
    )
    print("\n".join(done.wrong) or "every transaction is there, and everything is sound")
    sys.exit(1 if done.wrong else 0)
