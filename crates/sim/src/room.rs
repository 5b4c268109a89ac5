//! Memory of the machine, and drives that need more memory than there is.
//!
//! A table takes no memory when it is allocated, because the system provides pages only when they
//! are written. So the tables of a drive may be larger than the memory if little of the drive is
//! written. If the drive is filled, its tables must fit the memory, or Linux would end the process
//! and, with it, a notebook that the run belongs to.

use crate::notes::HELD_IN_TABLES;
use crate::{Base, Precondition, RunError};
use flashatlas_device::DriveConfig;
use flashatlas_types::{ConfigError, MEMORY_PER_UNIT, Note};

/// Least number of bytes of memory that a written unit takes. On `tlc-nvme-1tb`, where the other
/// memory of the process is negligible, 17.9 bytes were measured for each exported unit (`fill`),
/// and 17.3 for each physical unit (`steady`). On smaller drives and with log-block schemes, 21 to
/// 34 bytes were measured.
const CERTAIN_PER_UNIT: u64 = 16;

/// Nanoseconds of a core in which a fill preconditions a mapping unit, with the map in DRAM: the
/// least and the most.
///
/// The time is shorter if the tables fit into the processor's caches. On two cores that were also
/// busy with other work, drives of 0.7 to 2 million units took 30 to 112 ns a unit for `fill` and
/// 50 to 273 ns a unit for `steady`. The upper bounds are larger than these measurements.
const FILL_NS: [u32; 2] = [30, 150];

/// Nanoseconds in which a unit is brought into the steady state, as for [`FILL_NS`].
const STEADY_NS: [u32; 2] = [50, 370];

/// Returns the seconds of a core that it takes to write all units of a drive with the map in DRAM:
/// the least and the most. The precondition is `steady` or `fill`.
pub(crate) fn seconds(steady: bool, units: u32) -> [f64; 2] {
    let of_unit = if steady { STEADY_NS } else { FILL_NS };
    of_unit.map(|ns| f64::from(units) * f64::from(ns) / 1e9)
}

/// Bytes of tables from which a run says why its drive is held in tables.
const WORTH_SAYING: u64 = 1 << 30;

/// Returns a note that the drive is held in tables, if they are large.
pub(crate) fn held_in_tables(
    reason: &str,
    steady: bool,
    config: &DriveConfig,
) -> Result<Option<Note>, ConfigError> {
    let layout = config.layout()?;
    let bytes = u64::from(layout.slots()) * u64::from(config.drives()) * MEMORY_PER_UNIT;
    let [least, _] = seconds(steady, layout.logical_units);
    Ok((bytes >= WORTH_SAYING).then(|| {
        HELD_IN_TABLES.with([
            ("reason", reason.into()),
            ("gib", (bytes as f64 / (1u64 << 30) as f64).into()),
            ("seconds", least.into()),
        ])
    }))
}

/// Returns the least bytes of memory that a run takes for the units that it preconditions.
///
/// The number is known for `fill` and `steady`; it is 0 for any other precondition.
///
/// # Errors
/// Returns an error if a drive with this configuration cannot be made.
pub(crate) fn certain_bytes(
    precondition: &Precondition,
    config: &DriveConfig,
) -> Result<u64, ConfigError> {
    let units = match precondition {
        Precondition::Fill => u64::from(config.shape().units()),
        // a drive in its steady state has written every block
        Precondition::Steady => u64::from(config.layout()?.slots()) * u64::from(config.drives()),
        _ => 0,
    };
    Ok(units * CERTAIN_PER_UNIT)
}

/// Returns whether the content of the drive before the run may be computed, so that it takes no
/// memory. A drive that is found to compute nothing after all is asked about again.
pub(crate) fn is_computed(precondition: &Precondition, base: Base, config: &DriveConfig) -> bool {
    let has_one = matches!(precondition, Precondition::Fill | Precondition::Steady);
    has_one && base == Base::Computed && config.takes_up_a_base()
}

/// Refuses a drive whose tables do not fit, and a precondition that takes more than `free` bytes.
/// Nothing of it is computed.
///
/// # Errors
/// Returns an error that names the largest drive that fits.
pub(crate) fn must_fit(
    precondition: &Precondition,
    config: &DriveConfig,
    free: Option<u64>,
) -> Result<(), RunError> {
    let needed = certain_bytes(precondition, config)?;
    let Some(free) = free.filter(|&free| free < needed) else {
        return Ok(config.must_have_room(config.drives(), free)?);
    };
    let what = if *precondition == Precondition::Fill { "fill" } else { "steady" };
    Err(RunError::option(
        "precondition",
        format!(
            "{what} writes the whole drive, whose tables then take at least {}, but {} of memory \
             are available. {}; or begin with ‹precondition=none›",
            gibibytes(needed),
            gibibytes(free),
            config.largest(config.blocks_in(free, needed))
        ),
    ))
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// Files of one version of control groups: the limit and the use of a group's memory.
struct Version {
    root: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// Fields of `memory.stat` for cached files, which the kernel drops when it needs memory.
    files: [&'static str; 2],
}

const V1: Version = Version {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    files: ["total_inactive_file", "total_active_file"],
};
const V2: Version = Version {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    files: ["inactive_file", "active_file"],
};

/// Returns the bytes of memory that this process may take, or `None` if the system is not Linux.
///
/// The number is the smallest of these: the bytes that Linux has available (`MemAvailable` of
/// `/proc/meminfo`), and the bytes left under each limit of the process's control groups. Control
/// groups of both versions count (`cgroups(7)`). Swap is not counted, because tables are accessed
/// in random order. `read` returns the content of a file, or `None` if the file does not exist.
pub fn free_memory(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let available = field(&read("/proc/meminfo")?, "MemAvailable:")?.saturating_mul(1024);
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let limits = own.lines().filter_map(|line| {
        let (_, group) = line.split_once(':')?;
        let (controllers, path) = group.split_once(':')?;
        let version = match controllers {
            "" => V2,
            _ if controllers.split(',').any(|one| one == "memory") => V1,
            _ => return None,
        };
        left_of(&version, path, read)
    });
    limits.chain([available]).min()
}

/// Returns the smallest number of bytes left in a group or in one of the groups that contain it.
///
/// In a container, the container's own group is the root.
fn left_of(version: &Version, path: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let inside = path.trim_matches('/');
    let ends = inside.match_indices('/').map(|(at, _)| at).chain([0, inside.len()]);
    let left = ends.filter_map(|end| {
        let of = |file: &str| read(&format!("{}/{}/{file}", version.root, &inside[..end]));
        let limit: u64 = of(version.limit)?.trim().parse().ok()?;
        let usage: u64 = of(version.usage)?.trim().parse().ok()?;
        let stat = of("memory.stat").unwrap_or_default();
        let files: u64 = version.files.iter().filter_map(|name| field(&stat, name)).sum();
        Some(limit.saturating_sub(usage.saturating_sub(files)))
    });
    left.min()
}

/// Returns the number behind `name` on the line that begins with it.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::{free_memory, held_in_tables};
    use flashatlas_device::Registry;

    fn free(files: &[(&str, &str)]) -> Option<u64> {
        free_memory(&|path| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_large_drive_in_tables_says_why() {
        let said = |drive: &str| {
            let config = Registry::DRIVES.load(drive, None, &[]).unwrap();
            let note = held_in_tables("it is so", true, &config).unwrap();
            note.map(|note| serde_json::json!(note)["values"].clone())
        };
        assert!(said("tiny").is_none());
        let values = said("tlc-nvme-1tb").unwrap();
        assert_eq!(values["reason"], "it is so");
        // 261,881,856 units of 24 bytes, and 244,190,646 pages of 50 ns
        let expected = [("gib", 261_881_856.0 * 24.0 / 1_073_741_824.0), ("seconds", 12.209_532_3)];
        for (name, value) in expected {
            assert!((values[name].as_f64().unwrap() - value).abs() < 1e-9, "{name}");
        }
    }

    const MEMINFO: (&str, &str) = ("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    1000 kB\n");

    #[test]
    fn what_is_free_is_the_least_of_the_machine_and_its_groups() {
        assert_eq!(free(&[]), None);
        assert_eq!(free(&[MEMINFO]), Some(1_024_000));
        // version 2: 900,000 - (500,000 - 100,000 - 20,000) = 520,000; the root has no limit file
        let own = ("/proc/self/cgroup", "0::/a/b\n");
        let v2 = [
            MEMINFO,
            own,
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "1\n"),
            ("/sys/fs/cgroup/a/memory.max", "900000\n"),
            ("/sys/fs/cgroup/a/memory.current", "500000\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\nactive_file 20000\n"),
        ];
        assert_eq!(free(&v2), Some(520_000));
        // version 1 in a container, which sees its own group as the root: 700,000 - 650,000
        let v1 = [
            MEMINFO,
            ("/proc/self/cgroup", "9:cpu:/x\n4:memory:/docker/1\n0::/\n"),
            ("/sys/fs/cgroup/memory//memory.limit_in_bytes", "700000\n"),
            ("/sys/fs/cgroup/memory//memory.usage_in_bytes", "650000\n"),
        ];
        assert_eq!(free(&v1), Some(50_000));
        // a limit far above the available memory does not count
        let wide = [MEMINFO, own, ("/sys/fs/cgroup/a/memory.max", "99999999\n")];
        assert_eq!(free(&wide), Some(1_024_000));
    }
}
