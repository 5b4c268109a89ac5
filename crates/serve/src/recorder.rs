//! Recorder of the requests of clients, as a trace that a run can replay.

use flashatlas_types::{Ps, Request};
use flashatlas_workload::{Origin, Record, RecordSink, WriteOptions, create};
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A trace in the compact format that is being written. The file gets its final name at the end.
pub struct Recorder {
    path: PathBuf,
    partial: PathBuf,
    /// The sink, or the error after which nothing more is written.
    sink: Result<Box<dyn RecordSink>, String>,
    /// Time of the first request, on the server's clock.
    first: Option<Ps>,
    /// Time of the last request, counted from the first.
    last: Ps,
}

impl Recorder {
    /// Begins a trace. The file at `path` appears when the trace is complete.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn begin(path: &Path) -> std::io::Result<Recorder> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let output = BufWriter::with_capacity(1 << 16, File::create(&partial)?);
        let sink = create("atlas", Box::new(output), "none", &WriteOptions::default());
        let mut sink = sink.expect("the format is there and needs no parameter");
        sink.describe(&Origin { format: "served".into(), ..Origin::default() });
        let (first, last) = (None, Ps::ZERO);
        Ok(Recorder { path: path.to_owned(), partial, sink: Ok(sink), first, last })
    }

    /// Records a request that was carried out. It arrived at time `at` of the server's clock.
    pub fn put(&mut self, request: &Request, at: Ps) {
        let Ok(sink) = &mut self.sink else { return };
        let first = *self.first.get_or_insert(at);
        // requests are recorded in the order in which they got the drive's lock, not in which they
        // arrived
        self.last = self.last.max(Ps(at.0.saturating_sub(first.0)));
        let request = Request { at: self.last, ..*request };
        if let Err(error) = sink.put(&Record { request, device: 0 }) {
            self.sink = Err(error.to_string());
        }
    }

    /// Ends the trace. Returns its path and the number of its requests, or the reason why it could
    /// not be written.
    pub fn finish(self) -> Value {
        let Recorder { path, partial, sink, .. } = self;
        let finished = sink.and_then(|sink| sink.finish().map_err(|error| error.to_string()));
        let named = finished.and_then(|written| {
            std::fs::rename(&partial, &path).map_err(|error| error.to_string())?;
            Ok(written.records)
        });
        match named {
            Ok(requests) => json!({ "path": path, "requests": requests }),
            Err(error) => {
                drop(std::fs::remove_file(&partial));
                json!({ "path": path, "error": error })
            }
        }
    }
}
