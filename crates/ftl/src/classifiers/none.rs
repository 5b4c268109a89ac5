//! No classification: one stream.

use super::{Classifier, ClassifierDef};
use crate::MemoryUse;
use flashatlas_types::Lpn;

pub const DEF: ClassifierDef = ClassifierDef {
    name: "none",
    summary: "every page alike",
    paper: "-",
    params: &[],
    build: |_, _, _| Box::new(None),
};

struct None;

impl Classifier for None {
    fn written(&mut self, _: Lpn) -> u32 {
        0
    }

    fn moved(&mut self, _: Lpn) -> u32 {
        0
    }

    fn memory(&self) -> Vec<MemoryUse> {
        Vec::new()
    }
}
