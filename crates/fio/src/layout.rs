//! Layout of jobs on a drive.
//!
//! Each clone becomes a job of its own, files are placed side by side, and sizes are resolved and
//! checked.

use super::definitions::of;
use super::error::{JobError, Position, Warning};
use super::job::{JobFile, MAX_JOBS, Section};
use super::options::Options;
use super::replay::Replay;
use super::value::Amount;
use std::collections::HashMap;
use std::sync::Arc;

/// Alignment of the first byte of a file: a block of common file systems.
const FILE_ALIGN: u64 = 4096;
/// Maximum number of files of all jobs together; a file counts once for each job that uses it.
const MAX_FILES: usize = 65_536;
/// Size of the largest request: 1 GiB less two sectors, because an unaligned request is widened by
/// up to a sector at each end.
const MAX_BLOCK_BYTES: u64 = (1 << 30) - 1024;
/// Maximum number of bytes of a drive that are used, so that the sum of two addresses cannot
/// overflow.
const MAX_CAPACITY: u64 = 1 << 62;
/// Maximum number of blocks in the random maps of all jobs: 512 MiB of bits.
const MAX_MAP_BLOCKS: u64 = 1 << 32;

/// A file, and the part of it that one job uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpan {
    /// Name of the file, as fio writes it to an iolog.
    pub name: String,
    /// `true` if the file is the whole drive, and `false` if it is a file on the drive.
    pub is_drive: bool,
    /// Byte of the drive at which the file begins.
    pub start: u64,
    /// Byte of the file at which the job begins.
    pub offset: u64,
    /// Number of bytes of the file that the job uses.
    pub length: u64,
    /// Size of the file, in bytes.
    pub file_bytes: u64,
}

/// A job or a clone of a job. fio runs each of them as one thread.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name of the job's section.
    pub name: String,
    /// Number of the job, from 1, in order.
    pub number: u32,
    /// Number of the clone within its section, from 0.
    pub clone: u32,
    /// Number of the job's group, from 0; `stonewall` and `new_group` begin a new group.
    pub group: u32,
    /// `true` if the job waits until no job runs.
    pub stonewall: bool,
    /// Files of the job.
    pub files: Vec<JobSpan>,
    /// Number of bytes of one pass.
    pub size: u64,
    /// Bytes to issue in each loop instead of `size`, if the option `io_size` is given.
    pub io_size: Option<u64>,
    /// The options of the job's section.
    pub options: Arc<Options>,
    /// The log that the job replays.
    pub(super) replay: Option<Arc<Replay>>,
}

/// All jobs of a file on a drive.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The jobs, in the order of their numbers.
    pub jobs: Vec<Job>,
    /// Warnings about parts that are not simulated as they are written, besides
    /// [`JobFile::warnings`].
    pub warnings: Vec<Warning>,
    /// Options of the global sections: see [`JobFile::global`].
    pub global: Vec<(String, String)>,
    /// Number of bytes, from the start of the drive, that the files take.
    pub bytes: u64,
}

impl JobFile {
    /// Lays the jobs out on a drive of `capacity` bytes.
    ///
    /// # Errors
    /// Returns an error for a job or file that does not fit the drive, for a block size that does
    /// not fit its file, for jobs of one group that settle by different options, and for too many
    /// jobs, files or mapped blocks.
    pub fn layout(&self, capacity: u64) -> Result<Layout, JobError> {
        let mut jobs = Vec::new();
        let capacity = capacity.min(MAX_CAPACITY);
        let (mut group, mut spans, mut mapped) = (0, 0, 0u64);
        for section in &self.sections {
            let o = &section.options;
            for clone in 0..o.clones {
                if jobs.len() >= MAX_JOBS {
                    return Err(error(
                        section,
                        "numjobs",
                        format!("the file has more than {MAX_JOBS} jobs in all"),
                    ));
                }
                let first = clone == 0;
                if first && (o.stonewall || o.new_group) && !jobs.is_empty() {
                    group += 1;
                }
                let mut job = Job {
                    name: section.name.clone(),
                    number: jobs.len() as u32 + 1,
                    clone,
                    group,
                    stonewall: first && o.stonewall,
                    files: Vec::new(),
                    size: 0,
                    io_size: None,
                    options: Arc::clone(o),
                    replay: section.replays.iter().cycle().nth(clone as usize).cloned(),
                };
                match job.replay.clone() {
                    Some(replay) => job.replayed_files(&replay, section, capacity)?,
                    None => job.size_files(section, capacity)?,
                }
                if let Some(before) = jobs.last().filter(|before: &&Job| before.group == group)
                    && before.options.settling != o.settling
                {
                    return Err(error(
                        section,
                        "steadystate",
                        format!(
                            "the jobs of a group settle together, but the job `{}` has other \
                             options of `steadystate`; write the same options for each job (in \
                             [global]), or use `new_group`",
                            before.name
                        ),
                    ));
                }
                spans += job.files.len();
                if spans > MAX_FILES {
                    return Err(error(
                        section,
                        "nrfiles",
                        format!("the jobs have more than {MAX_FILES} files in all"),
                    ));
                }
                mapped = mapped.saturating_add(job.mapped_blocks());
                if mapped > MAX_MAP_BLOCKS {
                    let why = format!(
                        "the random map would have more than {MAX_MAP_BLOCKS} blocks; use \
                         norandommap, or larger blocks"
                    );
                    return Err(error(section, "rw", why));
                }
                jobs.push(job);
            }
        }
        Files::default().place(self, jobs, capacity)
    }
}

fn error(section: &Section, option: &str, why: String) -> JobError {
    JobError::new(
        section.options.places.get(option).unwrap_or(&section.at),
        format!("{option}: {why}"),
    )
}

/// Returns `true` if `name` names a drive, not a file.
fn names_drive(name: &str) -> bool {
    name.starts_with("/dev/")
}

impl Job {
    /// Returns the names of the files: the given names, or fio's default names `name.clone.number`.
    fn names(&self, section: &Section) -> Vec<String> {
        let o = &self.options;
        if o.filenames.is_empty() {
            (0..o.files)
                .map(|i| self.in_folder(&format!("{}.{}.{i}", section.name, self.clone)))
                .collect()
        } else {
            o.filenames.iter().map(|name| self.in_folder(name)).collect()
        }
    }

    /// Returns the name with the job's folder in front, unless it is the name of a drive.
    fn in_folder(&self, name: &str) -> String {
        match &self.options.directory {
            Some(folder) if !names_drive(name) => format!("{folder}/{name}"),
            _ => name.to_owned(),
        }
    }

    /// Sets the files of a job that replays a log.
    ///
    /// The job uses each file up to the end of the farthest request in this file.
    fn replayed_files(
        &mut self,
        replay: &Replay,
        section: &Section,
        capacity: u64,
    ) -> Result<(), JobError> {
        for (logged, &end) in replay.files.iter().zip(&replay.ends) {
            let (name, is_drive) = (self.in_folder(logged), names_drive(logged));
            if end > capacity {
                let why = format!(
                    "the log reaches byte {end} of `{name}`, but the drive has {capacity} bytes \
                     (see replay_scale)"
                );
                return Err(error(section, "read_iolog", why));
            }
            let file_bytes = if is_drive { capacity } else { end };
            let (start, offset) = (0, 0);
            self.files.push(JobSpan { name, is_drive, start, offset, length: end, file_bytes });
        }
        if let Some(longest) = replay.longest().filter(|bytes| *bytes > MAX_BLOCK_BYTES) {
            let why = format!(
                "a request has {longest} bytes; a request can have at most {MAX_BLOCK_BYTES} bytes"
            );
            return Err(error(section, "read_iolog", why));
        }
        self.size = replay.ends.iter().fold(0, |sum, end| sum.saturating_add(*end));
        Ok(())
    }

    /// Sets the files, and the part of each file that the job uses.
    fn size_files(&mut self, section: &Section, capacity: u64) -> Result<(), JobError> {
        let names = self.names(section);
        let o = Arc::clone(&self.options);
        let count = names.len() as u64;
        let sizeless = o.size.is_none() && o.file_size.is_none();
        let smallest = o.smallest();
        let given = match o.size {
            Some(Amount::Bytes(bytes)) => Some(bytes),
            _ => None,
        };
        let each = given.map(|bytes| bytes / count - bytes / count % smallest);
        let mut total = 0u64;
        for name in names {
            let drive = names_drive(&name) || sizeless;
            let whole = match (drive, o.file_size, given) {
                (true, ..) => capacity,
                (_, Some(bytes), _) => bytes,
                (_, _, Some(bytes)) => bytes / count,
                _ => {
                    return Err(error(
                        section,
                        "size",
                        "a file needs a size in bytes, or the option `filesize`".into(),
                    ));
                }
            };
            let offset = self.offset(whole);
            if offset >= whole && (drive || o.file_size.is_some()) {
                return Err(error(
                    section,
                    "offset",
                    format!(
                        "the job would begin at byte {offset} of `{name}`, which has {whole} bytes"
                    ),
                ));
            }
            let room = whole.saturating_sub(offset);
            let mut length = match (o.file_size, each) {
                (None, Some(0)) | (None, None) | (Some(_), _) => room,
                (None, Some(each)) => each,
            };
            if let Some(Amount::Percent(percent)) = o.size {
                length = of(Amount::Percent(percent), whole).min(room);
                length -= length % smallest;
            }
            let end = offset.checked_add(length);
            let end = end.ok_or_else(|| {
                error(section, "offset", "the file would end beyond 2^64 bytes".into())
            })?;
            if end > capacity {
                let option = if offset > 0 { "offset" } else { "size" };
                return Err(error(
                    section,
                    option,
                    format!(
                        "the job would end at byte {end} of `{name}`, but the drive has {capacity} \
                         bytes"
                    ),
                ));
            }
            total = total.saturating_add(length);
            let file_bytes = if drive { capacity } else { whole.max(end) };
            self.files.push(JobSpan {
                name,
                is_drive: drive,
                start: 0,
                offset,
                length,
                file_bytes,
            });
        }
        self.size = given.unwrap_or(total);
        self.io_size = o.io_size.map(|amount| of(amount, self.size));
        self.check_sizes(section, smallest)
    }

    /// Returns the first byte of the job in a file of `whole` bytes.
    fn offset(&self, whole: u64) -> u64 {
        let o = &self.options;
        let increment = of(o.offset_increment, whole).saturating_mul(u64::from(self.clone));
        let offset = of(o.offset, whole).saturating_add(increment);
        let shares = [o.offset, o.offset_increment].iter().any(|a| matches!(a, Amount::Percent(_)));
        if shares {
            offset
                .checked_next_multiple_of(o.offset_align.unwrap_or(o.smallest()))
                .unwrap_or(u64::MAX)
        } else {
            offset
        }
    }

    /// Returns `true` if the job writes.
    pub(super) fn writes(&self) -> bool {
        self.replay.as_ref().map_or(self.options.pattern.write, |replay| replay.writes)
    }

    /// Returns `true` if the job keeps a map of the blocks that it has used.
    pub(super) fn keeps_map(&self) -> bool {
        self.replay.is_none() && self.options.keeps_map()
    }

    /// Returns the number of blocks in the job's random maps.
    fn mapped_blocks(&self) -> u64 {
        let zones = self.options.zoning.zones();
        let mapped = |file: &JobSpan| zones.map_or(file.length, |zones| zones.range);
        let blocks = |file: &JobSpan| mapped(file) / self.options.smallest();
        if self.keeps_map() { self.files.iter().map(blocks).sum() } else { 0 }
    }

    fn check_sizes(&self, section: &Section, smallest: u64) -> Result<(), JobError> {
        let o = &self.options;
        if self.size < smallest || self.files.iter().any(|f| f.length < smallest) {
            let least = self.files.iter().map(|f| f.length).min().unwrap_or(0).min(self.size);
            return Err(error(
                section,
                "bs",
                format!("blocks of {smallest} bytes do not fit into the {least} bytes in use"),
            ));
        }
        if o.largest() > MAX_BLOCK_BYTES {
            let why = format!(
                "blocks of {} bytes are too large; give at most {MAX_BLOCK_BYTES} bytes",
                o.largest()
            );
            return Err(error(section, "bs", why));
        }
        if let super::Distribution::Zoned { absolute: true, zones } = &o.distribution {
            let largest =
                zones.iter().map(|z| z.iter().map(|z| z.size).sum::<u64>()).max().unwrap_or(0);
            if let Some(file) = self.files.iter().find(|f| largest > f.length) {
                let why = format!(
                    "zones of {largest} bytes do not fit into the {} bytes in use",
                    file.length
                );
                return Err(error(section, "random_distribution", why));
            }
        }
        Ok(())
    }
}

/// Files of all jobs, each with a number.
#[derive(Default)]
struct Files {
    /// Number of each file.
    by_name: HashMap<String, usize>,
    sizes: Vec<u64>,
    /// Number of the first section that names each file.
    first: Vec<usize>,
    drive: Option<(String, Position)>,
}

impl Files {
    /// Places the files side by side, in order of first appearance.
    fn place(
        mut self,
        file: &JobFile,
        mut jobs: Vec<Job>,
        capacity: u64,
    ) -> Result<Layout, JobError> {
        let section_of: Vec<usize> = file
            .sections
            .iter()
            .enumerate()
            .flat_map(|(i, s)| (0..s.options.clones).map(move |_| i))
            .collect();
        for (job, &section) in jobs.iter().zip(&section_of) {
            for span in &job.files {
                self.add(span, &file.sections[section], section)?;
            }
        }
        let starts = self.starts(file, capacity)?;
        for span in jobs.iter_mut().flat_map(|job| &mut job.files) {
            if !span.is_drive {
                let number = self.by_name[&span.name];
                (span.start, span.file_bytes) = (starts[number], self.sizes[number]);
            }
        }
        let bytes = starts.last().map_or(0, |start| start + self.sizes[self.sizes.len() - 1]);
        let mut warnings = Vec::new();
        if let (Some((name, at)), Some(first)) = (&self.drive, self.first.first()) {
            let why = format!(
                "`{name}` is the whole drive, which also holds the files of [{}]",
                file.sections[*first].name
            );
            warnings.push(Warning { at: at.clone(), option: "filename".into(), why });
        }
        Ok(Layout {
            jobs,
            warnings,
            global: file.global.clone(),
            bytes: if self.drive.is_some() { capacity } else { bytes },
        })
    }

    fn add(&mut self, span: &JobSpan, section: &Section, number: usize) -> Result<(), JobError> {
        if span.is_drive {
            let at = section.options.places.get("filename").unwrap_or(&section.at);
            return match &self.drive {
                Some((name, _))
                    if names_drive(name) && names_drive(&span.name) && *name != span.name =>
                {
                    let why = format!(
                        "`{}` is a second drive beside `{name}`, but only one drive is simulated",
                        span.name
                    );
                    Err(error(section, "filename", why))
                }
                _ => {
                    self.drive = Some((span.name.clone(), at.clone()));
                    Ok(())
                }
            };
        }
        let next = self.sizes.len();
        let index = *self.by_name.entry(span.name.clone()).or_insert(next);
        if index == next {
            self.sizes.push(0);
            self.first.push(number);
        }
        self.sizes[index] = self.sizes[index].max(span.file_bytes);
        Ok(())
    }

    fn starts(&self, file: &JobFile, capacity: u64) -> Result<Vec<u64>, JobError> {
        let mut starts = Vec::with_capacity(self.sizes.len());
        let mut end = 0u64;
        for (size, &section) in self.sizes.iter().zip(&self.first) {
            let start = end.next_multiple_of(FILE_ALIGN);
            end = start + size; // both terms are at most the capacity
            if end > capacity {
                let needed = self
                    .sizes
                    .iter()
                    .map(|s| u128::from(s.next_multiple_of(FILE_ALIGN)))
                    .sum::<u128>();
                let why = format!(
                    "the files of all jobs take {needed} bytes, but the drive has {capacity} bytes"
                );
                return Err(error(&file.sections[section], "size", why));
            }
            starts.push(start);
        }
        Ok(starts)
    }
}
