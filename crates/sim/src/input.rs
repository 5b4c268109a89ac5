//! Inputs of a run.
//!
//! The caller passes names and a way to open files by name. The library itself opens no file.

use crate::checkpoint::Checkpoint;
use crate::fit::{Extents, LARGEST_EXTENT};
use crate::parts::AddedPart;
use crate::trace_name::{TraceName, whole_trace};
use crate::{Environment, Opener, Reading, RunError, RunSpec, notes};
use flashatlas_device::DriveConfig;
use flashatlas_types::{Note, Seed};
use flashatlas_workload::{Opened, ReadOptions, RecordSource, TraceSummary};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

/// The format of a merge.
pub(crate) const MERGED: &str = "merge";

/// A file that a workload is read from.
pub struct InputPart {
    /// Path of the file.
    pub path: String,
    /// Format of the file.
    pub format: &'static str,
    /// `true` if the records name their operations.
    pub operations: bool,
    /// Length of the file in bytes, if known.
    pub length: Option<u64>,
    /// Start of the file's range on the drive, in bytes.
    pub start_bytes: u64,
    /// Length of the file's range in bytes, if known.
    pub bytes: Option<u64>,
    /// Number of passes over the file, in a merge.
    pub times: Option<u64>,
    /// Number of requests that each pass plays, if a pass does not play the whole file.
    pub requests: Option<u64>,
    /// Reason for the choice of the format, if it is a guess.
    pub guess: Option<String>,
    /// The files: one, or one for each CPU.
    pub files: Vec<InputFile>,
}

/// A file that is read.
pub struct InputFile {
    /// Path of the file.
    pub path: String,
    /// Hash of the file as it is read, if a digest is wanted.
    tap: Option<Arc<Mutex<Tap>>>,
}

/// A workload that is being read.
pub struct Input<'a> {
    /// Path of the trace, or text of the generator.
    pub name: String,
    /// Format of the trace, or `generator`.
    pub format: &'static str,
    /// Compression: `none`, `gz`, `bz2`, `xz` or `zst`.
    pub compression: &'static str,
    /// `true` if its records name their operations.
    pub operations: bool,
    /// `true` if its records carry times.
    pub timed: bool,
    /// The records.
    pub source: Box<dyn RecordSource + 'a>,
    /// Length of the file in bytes, if known.
    pub length: Option<u64>,
    /// The file, or the files of a merge; empty for a generator.
    pub parts: Vec<InputPart>,
}

/// Access to the inputs of a run.
pub struct Inputs<'a> {
    /// Opens files.
    pub opener: &'a dyn Opener,
    /// Formats and generators.
    pub workloads: flashatlas_workload::Registry,
    /// The parts that were added.
    pub added: &'a [AddedPart],
    /// Options for reading records.
    pub options: ReadOptions,
    /// Number of sectors of the drive, if there is a drive.
    pub capacity: Option<u64>,
    /// Files that were measured. A key consists of the path, the format and the options for
    /// reading.
    pub(crate) measured: Arc<Measured>,
}

/// For each measured file, its number of requests and the sector behind its highest address.
pub(crate) type Measured = Mutex<FxHashMap<String, (u64, u64)>>;

/// Reader that hashes everything that is read through it.
pub(crate) struct Tap {
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
    /// Returns the inputs of a run on a drive of `capacity` sectors.
    ///
    /// # Errors
    /// Returns an error if an option for reading has no meaning.
    pub fn of(
        env: &Environment<'a>,
        reading: &Reading,
        capacity: u64,
    ) -> Result<Inputs<'a>, RunError> {
        let options = reading.options()?;
        let added = env.added;
        Ok(Inputs {
            added,
            capacity: Some(capacity),
            ..Inputs::new(env.opener, env.workloads, options)
        })
    }

    /// Returns inputs for reading without a run, a drive or added parts.
    pub fn new(
        opener: &'a dyn Opener,
        workloads: flashatlas_workload::Registry,
        options: ReadOptions,
    ) -> Inputs<'a> {
        let measured = Arc::default();
        Inputs { opener, workloads, added: &[], options, capacity: None, measured }
    }

    /// Returns a copy that shares the measurements of files.
    pub(crate) fn again(&self) -> Inputs<'a> {
        Inputs { measured: Arc::clone(&self.measured), ..*self }
    }

    /// Opens the trace or the generator of a run, for a drive of `capacity` sectors.
    ///
    /// With `hashed`, [`Input::digest`] can return the SHA-256 of the file at the end.
    ///
    /// # Errors
    /// Returns an error unless either a trace or a generator is given, or if it cannot be opened.
    pub(crate) fn open(
        &self,
        spec: &RunSpec,
        capacity: u64,
        hashed: bool,
    ) -> Result<Input<'a>, RunError> {
        match (&spec.trace, &spec.workload) {
            (Some(path), None) => self.trace(path, spec.reading.format.as_deref(), hashed),
            (None, Some(text)) => self.generated(text, capacity, Seed(spec.seed)),
            (Some(_), Some(_)) => {
                Err(RunError::option("workload", "a trace is also given: give only one of the two"))
            }
            (None, None) => Err(RunError::option(
                "workload",
                "a run needs a workload: give ‹trace=FILE›, ‹workload=GENERATOR› or ‹job=FILE›",
            )),
        }
    }

    /// Opens the trace or the several traces that `path` names.
    ///
    /// With `hashed`, [`Input::digest`] can return the SHA-256 of the file at the end.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be opened or recognised.
    pub fn trace(
        &self,
        path: &str,
        format: Option<&str>,
        hashed: bool,
    ) -> Result<Input<'a>, RunError> {
        match TraceName::of(path)? {
            TraceName::Merge(parts) => self.merged(&parts, format, hashed),
            TraceName::File(_) | TraceName::Cpus(_) => {
                self.one(path, format, hashed, &self.options)
            }
        }
    }

    /// Opens one trace that is read with `options`.
    pub(crate) fn one(
        &self,
        path: &str,
        format: Option<&str>,
        hashed: bool,
        options: &ReadOptions,
    ) -> Result<Input<'a>, RunError> {
        let (opened, part) = self.opened(path, format, hashed, options)?;
        Ok(Input {
            name: part.path.clone(),
            format: opened.format.name,
            compression: opened.compression,
            operations: opened.operations,
            timed: opened.times,
            source: opened.source,
            length: part.length,
            parts: vec![part],
        })
    }

    /// Opens a file and, beside it, the other files of the same recording.
    ///
    /// All are read with `options`.
    pub(crate) fn opened(
        &self,
        path: &str,
        format: Option<&str>,
        hashed: bool,
        options: &ReadOptions,
    ) -> Result<(Opened, InputPart), RunError> {
        let of_blktrace = format.is_none_or(|format| format.starts_with("blktrace"));
        let name = match TraceName::of(path)? {
            TraceName::File(path) if !of_blktrace => TraceName::File(path),
            _ => TraceName::of(&whole_trace(path, &|path| self.opener.names_beside(path))?)?,
        };
        let paths = TraceName::one(&name.text())?;
        let (mut readers, mut files, mut length) = (Vec::new(), Vec::new(), Some(0));
        for path in paths {
            let opened = self.opener.open(&path);
            let (reader, bytes) =
                opened.map_err(|error| RunError::Io { path: path.clone(), error })?;
            length = length.zip(bytes).map(|(all, bytes)| all + bytes);
            let (reader, tap): (Box<dyn Read + Send>, _) = if hashed {
                let tap = Arc::new(Mutex::new(Tap { reader, hash: Sha256::new() }));
                (Box::new(TapReader(Arc::clone(&tap))), Some(tap))
            } else {
                (reader, None)
            };
            readers.push((path.clone(), reader));
            files.push(InputFile { path, tap });
        }
        let opened = match name {
            TraceName::Cpus(_) => self.workloads.open_together(readers, format, options),
            _ => {
                let (_, reader) = readers.swap_remove(0);
                self.workloads.open(reader, format, options).map_err(|error| (0, Box::new(error)))
            }
        };
        let opened = opened.map_err(|(number, error)| RunError::Open {
            path: files[number].path.clone(),
            error,
        })?;
        let part = InputPart {
            path: name.text(),
            format: opened.format.name,
            operations: opened.operations,
            length,
            start_bytes: 0,
            bytes: None,
            times: None,
            requests: None,
            guess: opened.guess.clone(),
            files,
        };
        Ok((opened, part))
    }

    /// Reads a checkpoint for a drive of `config`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is damaged, or is of another drive.
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

    /// Returns the requests of the generator that `text` describes.
    ///
    /// # Errors
    /// Returns an error if `text` describes no generator.
    pub fn generated(&self, text: &str, capacity: u64, seed: Seed) -> Result<Input<'a>, RunError> {
        let source = self.workloads.generate(text, capacity, seed)?;
        Ok(Input {
            name: text.to_owned(),
            format: "generator",
            compression: "none",
            operations: true,
            timed: true,
            source,
            length: None,
            parts: Vec::new(),
        })
    }
}

impl Input<'_> {
    /// Returns the next record, or `Ok(None)` at the end.
    ///
    /// # Errors
    /// Returns an error that names the file if the record cannot be read.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<flashatlas_workload::Record>, RunError> {
        let read = self.source.next();
        read.map_err(|error| RunError::Trace { path: self.file(), error: Box::new(error) })
    }

    /// Returns the path of the file that the last record came from.
    pub fn file(&self) -> String {
        self.source.file().unwrap_or(&self.name).to_owned()
    }

    /// Returns the share of the file that was read, or `None` if its length is not known.
    pub fn share_read(&self) -> Option<f64> {
        self.length.map(|length| self.source.bytes_read() as f64 / length.max(1) as f64)
    }

    /// Refuses a trace whose records name no operation, unless `assume_op` is given.
    ///
    /// # Errors
    /// Returns an error that names the format and the option.
    pub fn must_say(&self, reading: &Reading) -> Result<(), RunError> {
        if self.operations || reading.assume_op.is_some() {
            return Ok(());
        }
        Err(RunError::option(
            "assume_op",
            format!(
                "{}: the format {} does not name the operation of a request: give ‹assume_op=read› \
                 or ‹assume_op=write›",
                self.name, self.format
            ),
        ))
    }

    /// Returns a note for each file whose format was guessed.
    pub fn guesses(&self) -> Vec<Note> {
        let mut found: Vec<Note> = Vec::new();
        for part in &self.parts {
            let Some(guess) = &part.guess else { continue };
            let note = notes::FORMAT_GUESSED.with([
                ("path", part.path.as_str().into()),
                ("format", part.format.into()),
                ("rests_on", guess.as_str().into()),
            ]);
            // copies of a part have the same note
            if !found.contains(&note) {
                found.push(note);
            }
        }
        found
    }

    /// Returns the paths of the files that are read, in order.
    pub fn paths(&self) -> Vec<String> {
        let files = self.parts.iter().flat_map(|part| &part.files);
        files.map(|file| file.path.clone()).collect()
    }

    /// Returns the SHA-256 of the whole file, or of the digests of several files.
    ///
    /// Reads the files to their ends first. Returns `Ok(None)` if no file was hashed.
    ///
    /// # Errors
    /// Returns an error if the rest cannot be read.
    pub fn digest(&mut self) -> Result<Option<String>, RunError> {
        let files = self.parts.iter().flat_map(|part| &part.files);
        let digests: Vec<String> = files.filter_map(InputFile::digest).collect::<Result<_, _>>()?;
        Ok(match &digests[..] {
            [] => None,
            [one] if self.format != MERGED => Some(one.clone()),
            _ => Some(joined(&digests)),
        })
    }

    /// Returns the entries of the run record for the files, or none if there is only one file.
    ///
    /// # Errors
    /// Returns an error if the rest of a file cannot be read.
    pub fn parts_json(&self) -> Result<Vec<Value>, RunError> {
        let digest =
            |one: &InputFile| -> Result<Option<String>, RunError> { one.digest().transpose() };
        if self.format != MERGED {
            let several = self.parts.iter().filter(|part| part.files.len() > 1);
            let said = several.flat_map(|part| &part.files).map(|file| {
                let hash = digest(file)?.map(|hash| format!("sha256:{hash}"));
                Ok(json!({ "path": file.path, "format": self.format, "digest": hash }))
            });
            return said.collect();
        }
        let mut said: Vec<Map<String, Value>> = Vec::new();
        for part in &self.parts {
            let mut one = Map::new();
            one.insert("path".into(), part.path.as_str().into());
            one.insert("format".into(), part.format.into());
            let digests: Vec<String> =
                part.files.iter().filter_map(InputFile::digest).collect::<Result<_, _>>()?;
            // a copy has the digest of the part before it, which is the same file
            let before = said.last().filter(|_| digests.is_empty());
            for key in ["digest", "files"] {
                if let Some(value) = before.and_then(|one| one.get(key)) {
                    one.insert(key.into(), value.clone());
                }
            }
            match &digests[..] {
                [] => {}
                [hash] => drop(one.insert("digest".into(), format!("sha256:{hash}").into())),
                several => {
                    let hash = format!("sha256:{}", joined(several));
                    one.insert("digest".into(), hash.into());
                    let files = part.files.iter().zip(several);
                    let files = files.map(|(file, hash)| {
                        json!({ "path": file.path, "digest": format!("sha256:{hash}") })
                    });
                    one.insert("files".into(), files.collect());
                }
            }
            one.insert("start_bytes".into(), part.start_bytes.into());
            let known = [("bytes", part.bytes), ("times", part.times), ("requests", part.requests)];
            for (key, value) in known {
                if let Some(value) = value {
                    one.insert(key.into(), value.into());
                }
            }
            said.push(one);
        }
        Ok(said.into_iter().map(Value::Object).collect())
    }
}

/// Returns the SHA-256 of the digests, written one per line.
fn joined(digests: &[String]) -> String {
    crate::config_hash::hex(&Sha256::digest(digests.join("\n")))
}

impl InputFile {
    /// Returns the SHA-256 of the file, or `None` if it was not hashed. Reads the file to its end.
    fn digest(&self) -> Option<Result<String, RunError>> {
        let tap = self.tap.as_ref()?;
        let rest = io::copy(&mut TapReader(Arc::clone(tap)), &mut io::sink());
        let hash = tap.lock().expect("only one thread reads").hash.clone();
        let failed = |error| RunError::Io { path: self.path.clone(), error };
        Some(rest.map(|_| crate::config_hash::hex(&hash.finalize())).map_err(failed))
    }
}

/// Reads a whole trace, and returns its summary and the size of its packed extents.
///
/// The size is the number of bytes that the trace takes on a drive with `--fit compact`.
///
/// `progress` gets the numbers of requests and bytes read so far, and returns `false` to stop.
///
/// # Errors
/// Returns the errors of reading, and [`RunError::Interrupted`].
pub fn summarize(
    input: &mut Input<'_>,
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
