"""The table of commands: name, heading in the help, module, and first sentence of the help.

The module of a command is imported only when the command is called. The list of all commands is
therefore printed from this table.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A command, or a group of commands."""

    name: str
    heading: str
    place: str
    """``MODULE:NAME``: a function or a group in a module of this package."""
    about: str
    """The first sentence of the command's help; a test compares the two."""


RUN, STUDY, LOOK, PROVE, EXTEND, SERVE = "Run", "Study", "Look", "Prove", "Extend", "Serve"

FIRST = ("drives", "workloads", "run", "compare", "explain")
"""The commands that a new user needs first."""

ENTRIES = (
    Entry("run", RUN, "runs:run", "Replay one workload on one drive; every read is checked."),
    Entry(
        "compare",
        RUN,
        "runs:compare",
        "Run several drives or configurations on one workload, and compare the results.",
    ),
    Entry(
        "checkpoint",
        RUN,
        "runs:checkpoint",
        "Precondition a drive and save it in a file, for `--precondition checkpoint:FILE`.",
    ),
    Entry("trace", RUN, "traces:app", "Inspect traces, convert them, and fetch one."),
    Entry(
        "job",
        RUN,
        "jobs:job",
        "Write another simulator's workload as an fio job file, for `--job`.",
    ),
    Entry(
        "lookup",
        RUN,
        "lookup:lookup",
        "Look up addresses in hardware tables of a multi-bank DRAM, without a drive.",
    ),
    Entry(
        "sweep",
        STUDY,
        "sweep:sweep",
        "Carry out the runs of a study, and save their results in a store.",
    ),
    Entry(
        "calibrate",
        STUDY,
        "calibrate:calibrate",
        "Find the parameters of a drive from fio's measurements of a real one.",
    ),
    Entry("results", STUDY, "results:app", "Inspect a store of results that `sweep` made."),
    Entry(
        "figure",
        STUDY,
        "frames:figure",
        "Draw one result of many runs against a factor, in the size of a paper's column.",
    ),
    Entry(
        "table",
        STUDY,
        "frames:table",
        "Write runs as a table: a row for each run, a column for each setting and number.",
    ),
    Entry(
        "significance",
        STUDY,
        "frames:significance",
        "Test whether a difference is more than chance, and print a sentence for each value.",
    ),
    Entry("drives", LOOK, "listings:drives", "List the drives, or show one."),
    Entry(
        "workloads",
        LOOK,
        "listings:workloads",
        "List workload generators and their parameters, or show one.",
    ),
    Entry(
        "schemes",
        LOOK,
        "listings:schemes",
        "List schemes, map stores, cache policies, victim policies and classifiers, or show one.",
    ),
    Entry(
        "layers",
        LOOK,
        "listings:layers",
        "List the layers that a host can put over a drive, or show one layer's parameters.",
    ),
    Entry("formats", LOOK, "listings:formats", "List trace formats, or show one."),
    Entry(
        "explain",
        LOOK,
        "explain:explain",
        "Explain a key or a name: meaning, range, default, and the presets that set it.",
    ),
    Entry(
        "report",
        LOOK,
        "report:report",
        "Write one report of earlier runs, or the page of a study.",
    ),
    Entry(
        "diff",
        LOOK,
        "diff:diff",
        "Show which numbers moved between two sets of runs.",
    ),
    Entry("probe", LOOK, "probe:app", "Measure properties of a drive by sending host commands."),
    Entry(
        "check",
        PROVE,
        "check:check",
        "Test whether parts (yours, or parts of FlashAtlas) keep the promises of their kind.",
    ),
    Entry(
        "crash",
        PROVE,
        "crash:crash",
        "Let the power fail at every operation of short workloads, and check the drive.",
    ),
    Entry(
        "pull-plug",
        PROVE,
        "plug:pull_plug",
        "Pull the plug of a drive under a real kernel's ext4, and check every promise.",
    ),
    Entry("rerun", PROVE, "again:rerun", "Run earlier runs again, from their records alone."),
    Entry(
        "bundle",
        PROVE,
        "again:bundle",
        "Pack runs into one file, with the traces, job files and checkpoints that they read.",
    ),
    Entry(
        "cite",
        PROVE,
        "again:cite",
        "Print BibTeX entries of FlashAtlas and of the papers about the parts that the runs used.",
    ),
    Entry(
        "reproduce",
        PROVE,
        "reproduce:app",
        "Compute published results again, and show the deviations.",
    ),
    Entry(
        "new",
        EXTEND,
        "new:new",
        "Create the project of a part of your own, outside FlashAtlas, with tests.",
    ),
    Entry(
        "plugin-header",
        EXTEND,
        "listings:plugin_header",
        "Print the folder of the headers `flashatlas_plugin.h` and `flashatlas_plugin.hpp`.",
    ),
    Entry(
        "serve",
        SERVE,
        "serve:serve",
        "Serve a drive to real programs, over NBD (nbdkit) or as an NVMe drive over TCP.",
    ),
    Entry(
        "top",
        SERVE,
        "top:top",
        "Watch a served drive: rates, latencies, write amplification by cause, free blocks, "
        "merges.",
    ),
    Entry(
        "mount",
        SERVE,
        "plug:mount",
        "Mount ext4 on a served drive, through nbdfuse and a loop device (root, Linux).",
    ),
    Entry(
        "image",
        SERVE,
        "image:app",
        "Inspect images, the files in which served drives store their flash.",
    ),
)

COMMANDS = {entry.name: entry for entry in ENTRIES}
"""Commands by name, in the order of the help."""
