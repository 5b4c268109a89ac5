//! A classifier in Python.
//!
//! Either the classifier is asked for every page, or it has tables of streams by logical page and
//! changes these tables after a batch of writes.

use super::tables::Learning;
use super::{Described, leaked, raised, values};
use flashatlas_ftl::MemoryUse;
use flashatlas_ftl::classifiers::{Classifier, ClassifierDef, Collected, Page, Stream, Streams};
use flashatlas_types::{MemoryKind, ParamDef, Params, PartFault, StreamId};
use pyo3::prelude::*;

/// `age` of a page that was never written.
const NEVER: u64 = u64::MAX;

struct Sorter {
    who: &'static str,
    classifier: Py<PyAny>,
    streams: Streams,
    learning: Learning,
    hears_erases: bool,
}

/// Returns the definition of a classifier that is written in Python.
pub fn definition(described: Described, params: &'static [ParamDef]) -> ClassifierDef {
    let who = leaked(&format!("classifier `{}` ({})", described.name, described.origin.0));
    let (make, batch, history) = (described.make, described.batch, described.history);
    let own = described.streams.map(|(host, collection)| Streams { host, collection });
    let build = move |set: &Params, pages: u32, streams: u32| {
        let streams = own.unwrap_or(Streams { host: streams, collection: streams });
        let learning = Learning::new(pages, [0; 2], batch);
        Python::attach(|py| {
            let made = values(py, set, params).and_then(|set| {
                let of = (streams.host, streams.collection);
                make.call1(py, (set, learning.shown(pages), of))
            });
            let classifier = made.unwrap_or_else(|e| raised(who, "__init__", None, py, e));
            let hears_erases = history && classifier.getattr(py, "erased").is_ok();
            Box::new(Sorter { who, classifier, streams, learning, hears_erases })
                as Box<dyn Classifier>
        })
    };
    ClassifierDef {
        name: leaked(&described.name),
        summary: leaked(&described.summary),
        paper: leaked(&described.paper),
        params,
        streams: own,
        history,
        build: Box::leak(Box::new(build)),
    }
}

/// Returns the number of a stream for Python; streams of collection are numbered -1, -2 and so on.
fn numbered(stream: Option<Stream>) -> Option<i64> {
    stream.map(|stream| match stream {
        Stream::Host(n) => i64::from(n.number()),
        Stream::Collection(n) => -1 - i64::from(n.number()),
    })
}

impl Sorter {
    fn checked(&self, method: &str, page: &Page, stream: u32, streams: u32) -> StreamId {
        if stream >= streams {
            let (lpn, most) = (page.lpn, streams - 1);
            PartFault::raise(
                self.who,
                format!(
                    "`{method}` returned stream {stream} for page {lpn}, but the streams are 0 to \
                     {most}"
                ),
            );
        }
        StreamId::new(stream)
    }

    fn ask(&self, method: &str, page: &Page, streams: u32) -> StreamId {
        let stream = Python::attach(|py| {
            let of = (page.lpn.0, page.clock, page.age, numbered(page.from));
            let stream = self.classifier.call_method1(py, method, of);
            stream
                .and_then(|stream| stream.extract::<u32>(py))
                .unwrap_or_else(|e| raised(self.who, method, None, py, e))
        });
        self.checked(method, page, stream, streams)
    }
}

impl Classifier for Sorter {
    fn written(&mut self, page: &Page) -> StreamId {
        if self.learning.is_asked() {
            return self.ask("written", page, self.streams.host);
        }
        if self.learning.hear(page.lpn.0, page.age.unwrap_or(NEVER)) {
            Python::attach(|py| {
                let learnt = self.classifier.call_method1(py, "_learn", (page.clock,));
                learnt.unwrap_or_else(|e| raised(self.who, "learn", None, py, e));
            });
        }
        let stream = self.learning.of(0, page.lpn.0);
        self.checked("written", page, stream, self.streams.host)
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        if self.learning.is_asked() {
            return self.ask("moved", page, self.streams.collection);
        }
        let stream = self.learning.of(1, page.lpn.0);
        self.checked("moved", page, stream, self.streams.collection)
    }

    fn erased(&mut self, block: &Collected) {
        if !self.hears_erases {
            return;
        }
        let &Collected { stream, age, valid, slots, .. } = block;
        Python::attach(|py| {
            let of = (numbered(stream), age, valid, slots);
            let heard = self.classifier.call_method1(py, "erased", of);
            heard.unwrap_or_else(|e| raised(self.who, "erased", None, py, e));
        });
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let bytes = Python::attach(|py| {
            let bytes = self.classifier.call_method0(py, "memory");
            bytes
                .and_then(|bytes| bytes.extract::<u64>(py))
                .unwrap_or_else(|e| raised(self.who, "memory", None, py, e))
        });
        match bytes {
            0 => Vec::new(),
            bytes => vec![MemoryUse { table: "classifier", memory: MemoryKind::Dram, bytes }],
        }
    }
}
