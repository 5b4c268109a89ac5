//! Traces as the edges hand them in: a name, and a way to open it (again). The library itself opens
//! no file.

use crate::checkpoint::Checkpoint;
use crate::fit::{Extents, LARGEST_EXTENT};
use crate::parts::AddedPart;
use crate::{Environment, Reading, RunError, RunSpec};
use flashatlas_device::DriveConfig;
use flashatlas_types::Seed;
use flashatlas_workload::{ReadOptions, RecordSource, TraceSummary};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

/// A byte stream with its length, where that is known.
pub type Stream = (Box<dyn Read + Send>, Option<u64>);

/// The world outside: files by path, and environment variables.
pub trait Opener {
    /// Open `path` for reading from its start.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &str) -> io::Result<Stream>;

    /// The value of an environment variable, for job files that name one.
    fn variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
}

impl<F: Fn(&str) -> io::Result<Stream>> Opener for F {
    fn open(&self, path: &str) -> io::Result<Stream> {
        self(path)
    }
}

/// A workload that is being read.
pub struct Input {
    /// Path, or the generator's text.
    pub name: String,
    /// Format, or `generator`.
    pub format: &'static str,
    /// `none`, `gz`, `bz2`, `xz` or `zst`.
    pub compression: &'static str,
    /// Whether its records say what they do.
    pub operations: bool,
    /// Whether its records carry times.
    pub timed: bool,
    /// The records.
    pub source: Box<dyn RecordSource>,
    /// Bytes of the file, where known.
    pub length: Option<u64>,
    digest: Option<Arc<Mutex<Tap>>>,
}

/// Where the inputs of a run come from.
pub struct Inputs<'a> {
    /// Opens files.
    pub opener: &'a dyn Opener,
    /// Formats and generators.
    pub workloads: flashatlas_workload::Registry,
    /// The parts that were added.
    pub added: &'a [AddedPart],
    /// How records are read.
    pub options: ReadOptions,
}

/// Hashes everything that passes.
struct Tap {
    reader: Box<dyn Read + Send>,
    hash: Sha256,
}

struct TapReader(Arc<Mutex<Tap>>);

impl Read for TapReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut tap = self.0.lock().expect("only one thread reads");
        let n = tap.reader.read(buffer)?;
        tap.hash.update(&buffer[..n]);
        Ok(n)
    }
}

impl<'a> Inputs<'a> {
    /// Those of a run.
    ///
    /// # Errors
    /// Options of reading that mean nothing.
    pub fn of(env: &Environment<'a>, spec: &RunSpec) -> Result<Inputs<'a>, RunError> {
        let options = spec.reading.options()?;
        Ok(Inputs { opener: env.opener, workloads: env.workloads, added: env.added, options })
    }

    /// Open a trace. With `hashed`, [`Input::digest`] can tell the SHA-256 of the file at the end.
    ///
    /// # Errors
    /// When it cannot be opened or recognised.
    pub fn trace(&self, path: &str, format: Option<&str>, hashed: bool) -> Result<Input, RunError> {
        let (reader, length) = self
            .opener
            .open(path)
            .map_err(|error| RunError::Io { path: path.to_owned(), error })?;
        let mut digest = None;
        let reader: Box<dyn Read + Send> = if hashed {
            let tap = Arc::new(Mutex::new(Tap { reader, hash: Sha256::new() }));
            digest = Some(Arc::clone(&tap));
            Box::new(TapReader(tap))
        } else {
            reader
        };
        let opened = self
            .workloads
            .open(reader, format, &self.options)
            .map_err(|error| RunError::Open { path: path.to_owned(), error: Box::new(error) })?;
        Ok(Input {
            name: path.to_owned(),
            format: opened.format.name,
            compression: opened.compression,
            operations: opened.operations,
            timed: opened.times,
            source: opened.source,
            length,
            digest,
        })
    }

    /// Read a checkpoint for a drive of `config`.
    ///
    /// # Errors
    /// When it cannot be opened, is damaged, or of another drive.
    pub(crate) fn checkpoint(
        &self,
        path: &str,
        config: &DriveConfig,
    ) -> Result<Checkpoint, RunError> {
        let (mut reader, _) = self
            .opener
            .open(path)
            .map_err(|error| RunError::Io { path: path.to_owned(), error })?;
        let read = Checkpoint::read(&mut reader, config);
        read.and_then(|checkpoint| checkpoint.must_have(self.added).map(|()| checkpoint))
            .map_err(|error| RunError::Checkpoint { path: path.to_owned(), error: Box::new(error) })
    }

    /// What a generator makes.
    ///
    /// # Errors
    /// When its text says nothing that can be made.
    pub fn generated(&self, text: &str, capacity: u64, seed: Seed) -> Result<Input, RunError> {
        let source = self.workloads.generate(text, capacity, seed)?;
        Ok(Input {
            name: text.to_owned(),
            format: "generator",
            compression: "none",
            operations: true,
            timed: true,
            source,
            length: None,
            digest: None,
        })
    }

    /// The workload of a run.
    ///
    /// # Errors
    /// When it is not given, given twice, or cannot be opened.
    pub fn workload(&self, spec: &RunSpec, capacity: u64, hashed: bool) -> Result<Input, RunError> {
        match (&spec.trace, &spec.workload) {
            (Some(path), None) => self.trace(path, spec.reading.format.as_deref(), hashed),
            (None, Some(text)) => self.generated(text, capacity, Seed(spec.seed)),
            (Some(_), Some(_)) => Err(RunError::option(
                "workload",
                "a trace was given, too: a run takes one of the two",
            )),
            (None, None) => Err(RunError::option(
                "workload",
                "a run needs one: `trace=FILE`, `workload=GENERATOR` or `job=FILE`",
            )),
        }
    }
}

impl Input {
    /// The next record.
    ///
    /// # Errors
    /// With the name of the file.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<flashatlas_workload::Record>, RunError> {
        self.source
            .next()
            .map_err(|error| RunError::Trace { path: self.name.clone(), error: Box::new(error) })
    }

    /// Share of the file that was read; `None` where its length is not known.
    pub fn share_read(&self) -> Option<f64> {
        self.length.map(|length| self.source.bytes_read() as f64 / length.max(1) as f64)
    }

    /// Refuse a trace that does not say what its requests do, unless the user said it.
    ///
    /// # Errors
    /// Names the format, and the option.
    pub fn must_say(&self, reading: &Reading) -> Result<(), RunError> {
        if self.operations || reading.assume_op.is_some() {
            return Ok(());
        }
        Err(RunError::option(
            "assume_op",
            format!(
                "{}: format {} does not say which operation a request is: give \
                 `assume_op=read` or `assume_op=write`",
                self.name, self.format
            ),
        ))
    }

    /// SHA-256 of the whole file; reads what is left of it.
    ///
    /// # Errors
    /// When the rest cannot be read.
    pub fn digest(&mut self) -> Result<Option<String>, RunError> {
        let Some(tap) = &self.digest else { return Ok(None) };
        io::copy(&mut TapReader(Arc::clone(tap)), &mut io::sink())
            .map_err(|error| RunError::Io { path: self.name.clone(), error })?;
        let hash = std::mem::take(&mut tap.lock().expect("only one thread reads").hash);
        Ok(Some(crate::config_hash::hex(&hash.finalize())))
    }
}

/// Read a whole trace and sum it up; also how many bytes it needs when its extents are packed
/// (`--fit compact`). `progress` sees the bytes read so far and may stop it.
///
/// # Errors
/// As reading it, and [`RunError::Interrupted`].
pub fn summarize(
    input: &mut Input,
    mut progress: impl FnMut(u64, u64) -> bool,
) -> Result<(TraceSummary, u64), RunError> {
    let (mut summary, mut extents) = (TraceSummary::new(), Extents::of(LARGEST_EXTENT));
    while let Some(record) = input.next_record()? {
        summary.add(&record);
        extents.add(&record, u64::MAX);
        if summary.requests() % 65_536 == 0
            && !progress(summary.requests(), input.source.bytes_read())
        {
            return Err(RunError::Interrupted);
        }
    }
    Ok((summary, extents.bytes()))
}
