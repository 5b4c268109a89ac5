//! Sources that a run may open: files, standard input, and tables.
//!
//! Python code turns tables into delimited text.

use flashatlas_sim::{Opener, Stream, trace_files};
use pyo3::prelude::*;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The name of standard input.
const STDIN: &str = "-";

/// Returns `True` if every part of a trace is a file, not standard input or a table of Python.
#[pyfunction]
pub fn is_file(path: &str) -> bool {
    let file = |path: &str| path != STDIN && !path.starts_with(TABLE);
    trace_files(path).map_or_else(|_| file(path), |files| files.iter().all(|path| file(path)))
}

/// Prefix of the names of tables that are Python objects.
pub const TABLE: &str = "table:";

/// First bytes of files with tables: Parquet, Arrow files (and Feather), and Arrow streams.
const TABLE_MAGICS: [&[u8]; 3] = [b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"];

/// The files and the environment of this process.
pub struct ThisProcess;

impl Opener for ThisProcess {
    fn open(&self, path: &str) -> io::Result<Stream> {
        if path == STDIN {
            return standard_input();
        }
        if path.starts_with(TABLE) {
            return Ok((Box::new(TableText::of(path)?), None));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "the path is a folder, not a file",
            ));
        }
        if !metadata.is_file() {
            return Ok((Box::new(file), None));
        }
        if is_table(&file)? {
            return Ok((Box::new(TableText::of(path)?), None));
        }
        Ok((Box::new(file), Some(metadata.len())))
    }

    fn names_beside(&self, path: &str) -> Vec<String> {
        names_beside(path)
    }

    fn stopped(&self) -> bool {
        Python::attach(|py| py.check_signals()).is_err()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn free_memory(&self) -> Option<u64> {
        flashatlas_sim::free_memory(&|path| std::fs::read_to_string(path).ok())
    }
}

/// Opener that opens only the files in one folder, for bundles from other people.
pub struct Confined {
    root: PathBuf,
}

impl Confined {
    /// Returns an opener of the files in the folder `root`.
    ///
    /// # Errors
    /// Returns an error if `root` does not exist.
    pub fn to(root: &str) -> io::Result<Confined> {
        Ok(Confined { root: Path::new(root).canonicalize()? })
    }

    /// Returns `true` if `path` lies in the folder after all links in `path` were followed.
    ///
    /// # Errors
    /// Returns the error of the system if the path does not exist.
    fn holds(&self, path: &str) -> io::Result<bool> {
        Ok(Path::new(path).canonicalize()?.starts_with(&self.root))
    }
}

impl Opener for Confined {
    fn open(&self, path: &str) -> io::Result<Stream> {
        // check before opening, because a bundle must not learn whether a file outside exists
        let outside = || io::Error::new(io::ErrorKind::PermissionDenied, OUTSIDE);
        if path == STDIN || path.starts_with(TABLE) || !self.holds(path).unwrap_or(false) {
            return Err(outside());
        }
        ThisProcess.open(path)
    }

    fn names_beside(&self, path: &str) -> Vec<String> {
        let folder = Path::new(path).parent().and_then(Path::to_str).unwrap_or_default();
        if self.holds(folder).unwrap_or(false) { names_beside(path) } else { Vec::new() }
    }

    fn stopped(&self) -> bool {
        ThisProcess.stopped()
    }

    fn free_memory(&self) -> Option<u64> {
        ThisProcess.free_memory()
    }
}

/// Reason why [`Confined`] refuses to open a file.
const OUTSIDE: &str = "the file is not in the bundle, and a run of a bundle reads no other files";

/// Returns the names of the files in the folder of `path`, or no names if it cannot be listed.
pub fn names_beside(path: &str) -> Vec<String> {
    let folder = match Path::new(path).parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns `True` if `path` is a table of Python, or a file that begins like a table.
#[pyfunction(name = "is_table")]
pub fn is_table_at(path: &str) -> io::Result<bool> {
    Ok(path.starts_with(TABLE) || is_table(&File::open(path)?)?)
}

fn is_table(file: &File) -> io::Result<bool> {
    let mut head = [0; 6];
    let read = file.read_at(&mut head, 0)?;
    Ok(TABLE_MAGICS.iter().any(|magic| head[..read].starts_with(magic)))
}

/// Copy of standard input in a file without a name, because a run may read a trace more than once.
static SPOOLED: Mutex<Option<Arc<File>>> = Mutex::new(None);

fn standard_input() -> io::Result<Stream> {
    let mut spooled = SPOOLED.lock().expect("no thread panics while it holds the lock");
    let file = match &*spooled {
        Some(file) => Arc::clone(file),
        None => {
            let mut file = tempfile::tempfile()?;
            io::copy(&mut Interruptible(io::stdin()), &mut file)?;
            Arc::clone(spooled.insert(Arc::new(file)))
        }
    };
    let length = file.metadata()?.len();
    Ok((Box::new(FromStart { file, at: 0 }), Some(length)))
}

/// A reader that returns an error after a signal from the user; the inner reader would continue.
struct Interruptible<R>(R);

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| py.check_signals()).map_err(io::Error::other)?;
        self.0.read(buffer)
    }
}

/// A reader of a shared file, with a position of its own.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A table as delimited text with a line of column names.
///
/// `flashatlas.inputs.table_traces` makes the text.
struct TableText {
    text: Py<PyAny>,
}

impl TableText {
    fn of(path: &str) -> io::Result<TableText> {
        Python::attach(|py| {
            let module = py.import("flashatlas.inputs.table_traces")?;
            Ok(TableText { text: module.call_method1("open_text", (path,))?.unbind() })
        })
        .map_err(|error: PyErr| io::Error::other(plain(&error)))
    }
}

impl Read for TableText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let piece = self.text.call_method1(py, "read", (buffer.len(),))?;
            let piece: &[u8] = piece.extract(py)?;
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        })
        .map_err(|error: PyErr| io::Error::other(plain(&error)))
    }
}

/// Returns the message of an exception, without its type.
fn plain(error: &PyErr) -> String {
    Python::attach(|py| error.value(py).to_string())
}
