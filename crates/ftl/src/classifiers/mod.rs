//! Hot/cold classifiers: into which of the `ftl.streams` frontiers a page is written.

mod address;
mod dac;
mod none;
mod two_lru;

use crate::MemoryUse;
use flashatlas_types::{Entry, Lpn, Param, ParamDef, Params, Text};

/// Decides how hot a page is. Stream 0 is the coldest.
pub trait Classifier: Send {
    /// The stream of a page that the host writes.
    fn written(&mut self, lpn: Lpn) -> u32;

    /// The stream of a page that collection moves.
    fn moved(&mut self, lpn: Lpn) -> u32;

    /// Its tables in the drive.
    fn memory(&self) -> Vec<MemoryUse>;
}

/// One classifier of the registry.
pub struct ClassifierDef {
    /// Name in `ftl.classifier`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub paper: &'static str,
    /// Its own parameters.
    pub params: &'static [ParamDef],
    /// Build one for `units` logical pages and `streams` streams.
    pub build: fn(&Params, units: u32, streams: u32) -> Box<dyn Classifier>,
}

flashatlas_types::entry!(ClassifierDef, "classifier", "ftl.classifier");

/// All classifiers.
pub const CLASSIFIERS: &[ClassifierDef] = &[none::DEF, address::DEF, dac::DEF, two_lru::DEF];

pub(crate) const CLASSIFIER: Param<Text> = Param::part(
    "ftl.classifier",
    ClassifierDef::KIND,
    "how pages are sorted into streams by how often they change",
)
.or("none");

pub(crate) const STREAMS: Param<u32> = Param::int(
    "ftl.streams",
    1,
    16,
    "frontiers for host writes in each lane (and as many for collection in dual mode): each keeps \
     a block open, which small drives miss",
)
.or("1");

/// Parameters that select a classifier.
pub const PARAMS: &[ParamDef] = &[CLASSIFIER.def, STREAMS.def];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use flashatlas_types::RawConfig;

    fn build(name: &str, set: &[(&str, &str)], streams: u32) -> Box<dyn Classifier> {
        let def = Registry::STANDARD.classifier(name).unwrap();
        let mut raw = RawConfig::default();
        set.iter().for_each(|(k, v)| raw.set(k, v, ""));
        (def.build)(
            &raw.resolve(&def.params.iter().collect::<Vec<_>>(), |_| None).unwrap(),
            100,
            streams,
        )
    }

    #[test]
    fn by_address_the_first_pages_are_hot() {
        let mut c = build("address", &[("ftl.hot_space", "0.2")], 3);
        let streams: Vec<u32> = [0, 19, 20, 99].map(|lpn| c.written(Lpn(lpn))).into();
        assert_eq!(streams, [2, 2, 0, 0]);
        assert_eq!((c.moved(Lpn(19)), c.moved(Lpn(20))), (2, 0));
    }

    #[test]
    fn dac_promotes_on_update_and_demotes_on_collection() {
        let mut c = build("dac", &[], 3);
        let writes: Vec<u32> = (0..4).map(|_| c.written(Lpn(7))).collect();
        assert_eq!(writes, [0, 1, 2, 2]);
        assert_eq!((c.moved(Lpn(7)), c.moved(Lpn(7)), c.moved(Lpn(7))), (1, 0, 0));
        assert_eq!(c.written(Lpn(8)), 0, "other pages are not touched");
    }

    #[test]
    fn two_lru_promotes_on_the_second_write_and_drops_the_least_recent() {
        let mut c = build("two-lru", &[("ftl.hot_pages", "1"), ("ftl.candidate_pages", "2")], 2);
        assert_eq!((c.written(Lpn(1)), c.written(Lpn(1))), (0, 1));
        assert_eq!(
            (c.written(Lpn(2)), c.written(Lpn(2))),
            (0, 1),
            "2 pushes 1 out of the hot list, to the candidates"
        );
        assert_eq!(c.written(Lpn(1)), 1, "and from there one write brings it back");
        assert_eq!((c.written(Lpn(3)), c.written(Lpn(4)), c.written(Lpn(5))), (0, 0, 0));
        assert_eq!(c.written(Lpn(3)), 0, "3 has left the two candidates");
        assert_eq!((c.moved(Lpn(1)), c.moved(Lpn(9))), (1, 0));
    }
}
