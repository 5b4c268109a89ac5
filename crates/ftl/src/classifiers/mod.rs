//! Hot/cold classifiers: a classifier chooses one of the `ftl.streams` frontiers for each page.

mod address;
mod dac;
mod midas;
mod none;
mod sepbit;
mod two_lru;

use crate::MemoryUse;
use crate::victims::Candidates;
use flashatlas_types::{
    BlockId, Entry, LaneId, LocalBlock, Lpn, Param, ParamDef, Params, StreamId, Text,
};

/// A classifier that decides how hot a page is. If a classifier supports any number of streams,
/// stream 0 is the coldest.
pub trait Classifier: Send {
    /// Returns the stream of a page that the host writes. The number is below [`Streams::host`].
    fn written(&mut self, page: &Page) -> StreamId;

    /// Returns the stream of a page that collection moves. The number is below
    /// [`Streams::collection`]. The function is called for all valid pages of a victim, one after
    /// another.
    fn moved(&mut self, page: &Page) -> StreamId;

    /// Notes a block that was collected and is being erased. The function is called only if
    /// [`ClassifierDef::history`] is `true`.
    fn erased(&mut self, block: &Collected) {
        let _ = block;
    }

    /// Notes a block that is full or was closed early. From now on, the block may be collected.
    fn closed(&mut self, block: &Filled) {
        let _ = block;
    }

    /// Notes that a closed block of a lane is no longer a candidate.
    fn removed(&mut self, lane: LaneId, block: LocalBlock) {
        let _ = (lane, block);
    }

    /// Picks the closed block of a lane that is collected next. Only a classifier whose streams
    /// have their own queues picks blocks. A picked block has at least one invalid slot. Returns
    /// `None` to let the victim policy decide.
    fn pick(&mut self, lane: LaneId, candidates: &Candidates<'_>) -> Option<LocalBlock> {
        let _ = (lane, candidates);
        None
    }

    /// Returns additional counters by name, for the run record.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Sets the counters of [`Classifier::details`] to zero.
    fn reset_counters(&mut self) {}

    /// Returns the tables that the classifier has in the drive.
    fn memory(&self) -> Vec<MemoryUse>;
}

/// A page that the host writes, or that collection moves.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The logical page.
    pub lpn: Lpn,
    /// The number of pages that the host wrote before this page.
    pub clock: u64,
    /// The age of the version that is superseded or moved: the number of pages that the host wrote
    /// from that version on, the version itself included.
    ///
    /// The value is `None` without [`ClassifierDef::history`], for a page that was never written,
    /// and for a page written before the mount.
    pub age: Option<u64>,
    /// The stream of the block that stores this version. The value is `None` without
    /// [`ClassifierDef::history`], for a version that is not on flash, and for a block that was
    /// opened before the mount.
    pub from: Option<Stream>,
    /// The block that stores this version. The value is `None` without [`ClassifierDef::history`],
    /// and for a version that is not on flash.
    pub block: Option<BlockId>,
}

/// A block that was closed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The number of the block among all blocks of the drive.
    pub id: BlockId,
    /// Lane of the block.
    pub lane: LaneId,
    /// Number of the block in the lane.
    pub block: LocalBlock,
    /// The stream that wrote the block. The value is `None` without [`ClassifierDef::history`], and
    /// for a block that was opened before the mount.
    pub stream: Option<Stream>,
}

/// A block that was collected.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The number of the block among all blocks of the drive.
    pub id: BlockId,
    /// The stream that wrote the block; `None` if the block was opened before the mount.
    pub stream: Option<Stream>,
    /// The number of pages that the host wrote since the block was opened.
    pub age: u64,
    /// The number of slots that were valid when the block was picked.
    pub valid: u32,
    /// The number of slots of a block.
    pub slots: u32,
}

/// A stream of host writes or of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// A stream of host writes.
    Host(StreamId),
    /// A stream of collection.
    Collection(StreamId),
}

/// The number of streams of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Streams of host writes.
    pub host: u32,
    /// Streams of collection.
    pub collection: u32,
}

/// A function that builds a classifier for a number of logical pages and a number of streams.
pub type Builder = dyn Fn(&Params, u32, u32) -> Box<dyn Classifier> + Send + Sync;

/// One classifier of the registry.
pub struct ClassifierDef {
    /// Name in `ftl.classifier`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The paper that describes the classifier.
    pub paper: &'static str,
    /// Parameters of the classifier itself.
    pub params: &'static [ParamDef],
    /// The numbers of streams of the classifier; `None` if each kind has `ftl.streams` streams.
    pub streams: Option<Streams>,
    /// `true` if the classifier needs ages and streams ([`Page::age`], [`Page::from`],
    /// [`Classifier::erased`]). The drive stores them in tables in its memory.
    pub history: bool,
    /// Builds a classifier for `units` logical pages and `streams` streams.
    pub build: &'static Builder,
}

flashatlas_types::entry!(ClassifierDef, "classifier", "ftl.classifier");

/// All classifiers.
pub const CLASSIFIERS: &[ClassifierDef] =
    &[none::DEF, address::DEF, dac::DEF, two_lru::DEF, sepbit::DEF, midas::DEF];

pub(crate) const CLASSIFIER: Param<Text> = Param::part(
    "ftl.classifier",
    ClassifierDef::KIND,
    "the classifier that sorts pages into streams by how often they change",
)
.or("none");

pub(crate) const STREAMS: Param<u32> = Param::int(
    "ftl.streams",
    1,
    16,
    "frontiers for host writes in each lane (and the same number for collection in dual mode); \
     each needs an open block, and a small drive may have too few blocks",
)
.or("1");

/// Parameters that select a classifier.
pub const PARAMS: &[ParamDef] = &[CLASSIFIER.def, STREAMS.def];

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Entries, RawConfig};

    fn page(lpn: u32) -> Page {
        Page { lpn: Lpn(lpn), clock: 0, age: None, from: None, block: None }
    }

    /// A classifier that returns the numbers of streams.
    struct Numbered(Box<dyn Classifier>);

    impl Numbered {
        fn written(&mut self, page: &Page) -> u32 {
            self.0.written(page).number()
        }

        fn moved(&mut self, page: &Page) -> u32 {
            self.0.moved(page).number()
        }

        fn erased(&mut self, block: &Collected) {
            self.0.erased(block);
        }
    }

    fn build(name: &str, set: &[(&str, &str)], streams: u32) -> Numbered {
        let def = Entries::of(CLASSIFIERS).named(name).unwrap();
        let mut raw = RawConfig::default();
        set.iter().for_each(|(k, v)| raw.set(k, v, ""));
        let params = raw.resolve(&def.params.iter().collect::<Vec<_>>(), |_| None).unwrap();
        Numbered((def.build)(&params, 100, streams))
    }

    #[test]
    fn by_address_the_first_pages_are_hot() {
        let mut c = build("address", &[("ftl.hot_space", "0.2")], 3);
        let streams: Vec<u32> = [0, 19, 20, 99].map(|lpn| c.written(&page(lpn))).into();
        assert_eq!(streams, [2, 2, 0, 0]);
        assert_eq!((c.moved(&page(19)), c.moved(&page(20))), (2, 0));
    }

    #[test]
    fn dac_promotes_on_update_and_demotes_on_collection() {
        let mut c = build("dac", &[], 3);
        let writes: Vec<u32> = (0..4).map(|_| c.written(&page(7))).collect();
        assert_eq!(writes, [0, 1, 2, 2]);
        assert_eq!((c.moved(&page(7)), c.moved(&page(7)), c.moved(&page(7))), (1, 0, 0));
        assert_eq!(c.written(&page(8)), 0, "other pages do not change");
    }

    #[test]
    fn sepbit_follows_algorithm_1() {
        let mut c = build("sepbit", &[("ftl.sepbit_blocks", "2")], 4);
        let aged = |age: u64, from: Option<Stream>| Page { age: Some(age), from, ..page(7) };
        let short = Some(Stream::Host(StreamId::new(0)));
        // without a mean lifespan, every update counts as short-lived, but a first write does not
        assert_eq!((c.written(&page(7)), c.written(&aged(1 << 40, None))), (1, 0));
        assert_eq!((c.moved(&aged(5, short)), c.moved(&aged(1 << 40, None))), (0, 1));
        // two blocks of class 1 lasted 60 and 140 pages, and a block of class 2 does not count, so
        // the mean is 100
        let id = BlockId::new(0);
        let gone = |stream, age| Collected { id, stream, age, valid: 0, slots: 8 };
        c.erased(&gone(short, 60));
        c.erased(&gone(Some(Stream::Host(StreamId::new(1))), 9000));
        assert_eq!(c.written(&aged(1000, None)), 0, "one block is too few");
        c.erased(&gone(short, 140));
        assert_eq!([99, 100].map(|age| c.written(&aged(age, None))), [0, 1]);
        let others = [
            Some(Stream::Host(StreamId::new(1))),
            Some(Stream::Collection(StreamId::new(0))),
            None,
        ];
        for from in others {
            let classes = [399, 400, 1599, 1600].map(|age| c.moved(&aged(age, from)));
            assert_eq!(classes, [1, 2, 2, 3], "4 and 16 lifespans, {from:?}");
        }
        assert_eq!(c.moved(&page(7)), 3, "pages that were written before the mount are old");
        assert_eq!(c.moved(&aged(1 << 40, short)), 0, "survivors of class 1 move to class 3");
    }

    #[test]
    fn two_lru_promotes_on_the_second_write_and_drops_the_least_recent() {
        let mut c = build("two-lru", &[("ftl.hot_pages", "1"), ("ftl.candidate_pages", "2")], 2);
        assert_eq!((c.written(&page(1)), c.written(&page(1))), (0, 1));
        assert_eq!(
            (c.written(&page(2)), c.written(&page(2))),
            (0, 1),
            "page 2 moves page 1 from the hot list to the candidates"
        );
        assert_eq!(c.written(&page(1)), 1, "one write makes a candidate hot again");
        assert_eq!((c.written(&page(3)), c.written(&page(4)), c.written(&page(5))), (0, 0, 0));
        assert_eq!(c.written(&page(3)), 0, "page 3 is no longer a candidate");
        assert_eq!((c.moved(&page(1)), c.moved(&page(9))), (1, 0));
    }
}
