//! Classifiers of plug-ins.

use crate::abi::{FA_FAULT, FA_NO_AGE, FA_NO_STREAM, FaClassifier, FaCollected, FaSorted};
use crate::common::{Common, PluginError, required};
use crate::{common, params, watch};
use flashatlas_ftl::MemoryUse;
use flashatlas_ftl::classifiers::{Classifier, ClassifierDef, Collected, Page, Stream, Streams};
use flashatlas_types::{MemoryKind, Params, PartFault, Ps, StreamId};
use std::ffi::c_void;

struct Sorter {
    who: &'static str,
    ops: FaClassifier,
    classifier: *mut c_void,
    /// Number of streams of host writes.
    host: u32,
    /// Number of streams of collection.
    collection: u32,
}

// SAFETY: as for a victim policy
unsafe impl Send for Sorter {}

/// Returns the definition of a classifier with these callbacks.
pub fn definition(common: Common, ops: FaClassifier) -> Result<ClassifierDef, PluginError> {
    let who = common.who;
    required(
        who,
        &[
            ("create", ops.create.is_some()),
            ("destroy", ops.destroy.is_some()),
            ("written", ops.written.is_some()),
            ("moved", ops.moved.is_some()),
        ],
    )?;
    if (ops.host_streams == 0) != (ops.collection_streams == 0) {
        return Err(PluginError::new(format!(
            "{who}: host_streams is {} and collection_streams is {}; set both, or set both to 0",
            ops.host_streams, ops.collection_streams
        )));
    }
    let streams = (ops.host_streams > 0)
        .then_some(Streams { host: ops.host_streams, collection: ops.collection_streams });
    let declared = common.params;
    let build = move |params: &Params, pages: u32, streams: u32| {
        let values = params::values(params, declared);
        let _call = watch::enter(who, "create", 0);
        // SAFETY: as the header says; the values outlive the call
        let classifier = unsafe { ops.create.expect("checked")(values.as_ptr(), pages, streams) };
        if classifier.is_null() {
            PartFault::raise(who, "`create` returned null");
        }
        // a classifier that declares no numbers has the same number of streams of both kinds
        let host = if ops.host_streams > 0 { ops.host_streams } else { streams };
        Box::new(Sorter { who, ops, classifier, host, collection: streams }) as Box<dyn Classifier>
    };
    Ok(ClassifierDef {
        name: common.name,
        summary: common.summary,
        paper: common.paper,
        params: declared,
        streams,
        history: ops.history,
        build: Box::leak(Box::new(build)),
    })
}

/// Returns the number of a stream, and whether it is a stream of collection.
fn stream(stream: Option<Stream>) -> (i32, bool) {
    match stream {
        None => (FA_NO_STREAM, false),
        Some(Stream::Host(n)) => (n.number() as i32, false),
        Some(Stream::Collection(n)) => (n.number() as i32, true),
    }
}

fn sorted(page: &Page) -> FaSorted {
    let (stream, collected) = stream(page.from);
    let age = page.age.unwrap_or(FA_NO_AGE);
    FaSorted { lpn: page.lpn.0, clock: page.clock, age, stream, collected }
}

impl Sorter {
    /// Returns the stream that a callback answered, which must be below `streams`.
    #[inline]
    fn checked(&self, callback: &'static str, page: &Page, stream: u32, streams: u32) -> StreamId {
        if stream < streams {
            return StreamId::new(stream);
        }
        if stream == FA_FAULT {
            // SAFETY: as in `written`
            let why = self.ops.fault.map(|fault| unsafe { fault(self.classifier) });
            common::fault(self.who, callback, Ps::ZERO, why);
        }
        let lpn = page.lpn;
        PartFault::raise(
            self.who,
            format!(
                "`{callback}` returned stream {stream} for page {lpn}, but the streams are 0 to {}",
                streams - 1
            ),
        )
    }
}

impl Classifier for Sorter {
    fn written(&mut self, page: &Page) -> StreamId {
        let call = watch::enter(self.who, "written", 0);
        // SAFETY: `create` made the classifier, and `destroy` has not freed it
        let stream = unsafe { self.ops.written.expect("checked")(self.classifier, &sorted(page)) };
        drop(call);
        self.checked("written", page, stream, self.host)
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        let call = watch::enter(self.who, "moved", 0);
        // SAFETY: as in `written`
        let stream = unsafe { self.ops.moved.expect("checked")(self.classifier, &sorted(page)) };
        drop(call);
        self.checked("moved", page, stream, self.collection)
    }

    fn erased(&mut self, block: &Collected) {
        if let Some(erased) = self.ops.erased {
            let (stream, collected) = stream(block.stream);
            let &Collected { age, valid, slots, .. } = block;
            let block = FaCollected { stream, collected, age, valid, slots };
            let _call = watch::enter(self.who, "erased", 0);
            // SAFETY: as in `written`
            unsafe { erased(self.classifier, &block) };
        }
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let Some(memory) = self.ops.memory else { return Vec::new() };
        let _call = watch::enter(self.who, "memory", 0);
        // SAFETY: as in `written`
        let bytes = unsafe { memory(self.classifier) };
        vec![MemoryUse { table: "classifier of a plug-in", memory: MemoryKind::Dram, bytes }]
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        let _call = watch::enter(self.who, "destroy", 0);
        // SAFETY: this is the last use of the classifier
        unsafe { self.ops.destroy.expect("checked")(self.classifier) };
    }
}
