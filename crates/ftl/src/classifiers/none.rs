//! No classification: one stream.

use super::{Classifier, ClassifierDef, Page};
use crate::MemoryUse;
use flashatlas_types::StreamId;

pub const DEF: ClassifierDef = ClassifierDef {
    name: "none",
    summary: "all pages go to one stream",
    paper: "-",
    params: &[],
    streams: None,
    history: false,
    build: &|_, _, _| Box::new(Unsorted),
};

struct Unsorted;

impl Classifier for Unsorted {
    fn written(&mut self, _: &Page) -> StreamId {
        StreamId::new(0)
    }

    fn moved(&mut self, _: &Page) -> StreamId {
        StreamId::new(0)
    }

    fn memory(&self) -> Vec<MemoryUse> {
        Vec::new()
    }
}
