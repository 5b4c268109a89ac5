"""The type of run records, ``flashatlas.run/2``, key by key (details in ``docs/FORMATS.md``).

``record.schema.json`` beside this file is the same type as a JSON Schema; a test compares them.
"""

from typing import Any

from typing_extensions import NotRequired, TypedDict

Counts = dict[str, int]
"""Counters by name; the names depend on the scheme, the store or the layer."""


class Build(TypedDict):
    """The sources and settings from which the program was built."""

    sources: str
    commit: str | None


class Part(TypedDict):
    """A part that did not come with the project."""

    kind: str
    name: str
    distribution: str
    version: str
    digest: str


class Config(TypedDict):
    """The configuration of the run, with the names and values of its options."""

    drive: str
    # begin: made from crates/sim/src/options
    mode: str
    precondition: str | dict[str, str]
    fit: str
    warmup: int
    workload: NotRequired[str]
    filesystem: NotRequired[str]
    interval: NotRequired[str]
    depth: NotRequired[int]
    until: NotRequired[str]
    limit: NotRequired[int]
    flush_every: NotRequired[int]
    extent: NotRequired[str]
    speed: NotRequired[float]
    # end: made from crates/sim/src/options
    params: dict[str, str | int | float | bool]
    merge: NotRequired[list[str]]
    merge_before: NotRequired[list[str]]
    reading: NotRequired[dict[str, str | int]]


class File(TypedDict):
    """A file that a trace or a job file consists of or names."""

    path: str
    digest: str


class TracePart(TypedDict):
    """One of several files that a run read as its trace."""

    path: str
    format: str
    digest: str
    files: NotRequired[list[File]]
    start_bytes: NotRequired[int]
    bytes: NotRequired[int]
    times: NotRequired[int]
    requests: NotRequired[int]


class Trace(TypedDict):
    """The requests of the run."""

    path: str
    format: str
    requests: int
    skipped_bad: int
    skipped_kinds: NotRequired[dict[str, int]]
    digest: NotRequired[str]
    parts: NotRequired[list[TracePart]]
    extent_bytes: NotRequired[int]
    named: NotRequired[list[File]]
    duplicates_dropped: NotRequired[int]
    not_selected: NotRequired[int]
    gaps_cut: NotRequired[int]
    backward_steps: NotRequired[int]


class Note(TypedDict):
    """A sentence about a run, with a code that does not change when the sentence is reworded.

    The code is ``None`` in records of an earlier version, which had only the text.
    """

    code: str | None
    text: str
    values: dict[str, str | int | float]


class Host(TypedDict):
    """Commands and bytes of the host."""

    reads: int
    writes: int
    trims: int
    flushes: int
    read_bytes: int
    write_bytes: int
    trim_bytes: int
    unmapped_reads: int


class Nand(TypedDict):
    """Operations of the flash by cause."""

    reads: Counts
    programs: Counts
    erases: Counts
    padded_units: int
    replaced_blocks: int
    copybacks: NotRequired[int]
    """Copies inside a die, if there were any."""
    slc: NotRequired[Counts]
    """Reads, programs and erases in blocks in SLC mode, if there were any."""


class Latency(TypedDict):
    """Latencies of one operation, in nanoseconds."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    p99_99: float
    max: float
    queue_mean: NotRequired[float]
    service_mean: NotRequired[float]


class Wear(TypedDict):
    """Erases of blocks over the life of the drive."""

    min: int
    mean: float
    max: int
    stddev: float
    blocks: int
    bad_blocks: int
    retired_blocks: int


class Smart(TypedDict):
    """The SMART log of NVMe: state since the drive was new, counts of the measured part."""

    critical_warning: int
    available_spare: int
    available_spare_threshold: int
    percentage_used: int
    data_units_read: int
    data_units_written: int
    host_read_commands: int
    host_write_commands: int
    media_errors: int
    power_on_hours: NotRequired[int]


class Oracle(TypedDict):
    """Counts of the oracle's comparisons."""

    units_checked: int
    units_swept: int
    violations: int
    examples: list[str]


class Sweep(TypedDict):
    """Counts of the units that were compared after the run, by the kind of comparison."""

    one_by_one: int
    summed: int
    by_base: int


class Conservation(TypedDict):
    """Counts of requests that were submitted, were completed, and failed."""

    submitted: int
    completed: int
    failed: int


class Record(TypedDict):
    """A run record, without the keys that do not apply to the run."""

    schema: str
    version: str
    build: Build
    config_hash: str
    config: Config
    seed: int
    trace: Trace
    random_streams: list[str]
    approximations: list[Note]
    results_digest: str
    host: Host
    controller: Counts
    nand: Nand
    map: dict[str, Any]
    mount: Counts
    memory_bytes: dict[str, Any]
    wear: Wear
    series: dict[str, float]
    oracle: Oracle
    conservation: Conservation
    smart: NotRequired[Smart]
    sweep: NotRequired[Sweep]
    label: NotRequired[str]
    checkpoint: NotRequired[dict[str, Any]]
    waf: NotRequired[float]
    waf_parts: NotRequired[dict[str, float]]
    gc: NotRequired[dict[str, Any]]
    faults: NotRequired[dict[str, Any]]
    merges: NotRequired[dict[str, Any]]
    scheme: NotRequired[Counts]
    log_areas: NotRequired[dict[str, Any]]
    lookup: NotRequired[dict[str, Any]]
    layers: NotRequired[dict[str, Any]]
    drives: NotRequired[list[dict[str, Any]]]
    latency_ns: NotRequired[dict[str, Latency]]
    simulated_ns: NotRequired[int]
    iops: NotRequired[float]
    bandwidth_bytes_per_s: NotRequired[float]
    utilisation: NotRequired[dict[str, Any]]
    energy: NotRequired[dict[str, Any]]
    steady: NotRequired[bool]
    steadiness: NotRequired[dict[str, Any]]
    settling: NotRequired[dict[str, Any]]
    explain: NotRequired[dict[str, Any]]
    fingerprint: NotRequired[dict[str, Any]]
    parts: NotRequired[list[Part]]
