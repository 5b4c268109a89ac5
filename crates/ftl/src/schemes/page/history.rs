//! The history that classifiers may need: the host's last write of each page, and the stream that
//! opened each block. It is stored only for classifiers that need it.

use super::PageMapped;
use crate::MemoryUse;
use crate::classifiers::{Collected, Page, Stream, Streams};
use flashatlas_types::{BlockId, FrontierId, Layout, Lpn, MemoryKind, Ppn, StreamId, TiVec};

pub(super) struct History {
    streams: Streams,
    /// The clock of the host's last write of each page, plus one; 0 if the write is unknown.
    written: TiVec<Lpn, u64>,
    /// The frontier that opened each block, and the clock of the opening.
    opened: TiVec<BlockId, Option<(FrontierId, u64)>>,
}

impl History {
    pub fn new(layout: &Layout, streams: Streams) -> History {
        History { streams, written: layout.per_page(0), opened: layout.per_block(None) }
    }

    /// Notes that frontier `f` of a lane begins a block.
    pub fn opened(&mut self, block: BlockId, f: FrontierId, clock: u64) {
        self.opened[block] = Some((f, clock));
    }

    /// Notes that block `to` replaces block `from` with all its data. The stream and the age of
    /// `from` are inherited.
    pub fn inherited(&mut self, from: BlockId, to: BlockId) {
        self.opened[to] = self.opened[from];
    }

    /// Returns the history of the version of a page that is in `at` or in a buffer.
    pub fn page(&self, layout: &Layout, lpn: Lpn, at: Ppn, clock: u64) -> Page {
        let block = at.mapped().map(|at| layout.block_of(at));
        let from = block.and_then(|block| self.stream(block));
        let written = self.written[lpn];
        Page { lpn, clock, age: (written > 0).then(|| clock + 1 - written), from, block }
    }

    /// Notes that the host writes a page.
    pub fn written(&mut self, lpn: Lpn, clock: u64) {
        self.written[lpn] = clock + 1;
    }

    /// Removes the host's last write of a page that is trimmed.
    pub fn trimmed(&mut self, lpn: Lpn) {
        self.written[lpn] = 0;
    }

    /// Returns the history of a block that is erased, and removes it.
    pub fn collected(&mut self, block: BlockId, valid: u32, slots: u32, clock: u64) -> Collected {
        let stream = self.stream(block);
        let opened = self.opened[block].take().map_or(clock, |(_, opened)| opened);
        Collected { id: block, stream, age: clock - opened, valid, slots }
    }

    /// Returns the stream that opened a block, or `None` if the stream is unknown.
    pub fn stream(&self, block: BlockId) -> Option<Stream> {
        self.opened[block].map(|(f, _)| match f.number().checked_sub(self.streams.host) {
            None => Stream::Host(StreamId::new(f.number())),
            Some(of_collection) => Stream::Collection(StreamId::new(of_collection)),
        })
    }

    /// Returns the memory that a drive needs for the history: nine bytes for each block. The drive
    /// also stores four bytes for each page in spare areas.
    pub fn memory(&self) -> MemoryUse {
        MemoryUse {
            table: "streams and ages of blocks",
            memory: MemoryKind::Dram,
            bytes: self.opened.len() as u64 * 9,
        }
    }
}

impl PageMapped {
    /// Returns the frontier of a page that the host writes, and notes the write.
    #[inline]
    pub(super) fn sort_host_write(&mut self, lpn: Lpn) -> FrontierId {
        let page = self.sorted_page(lpn);
        if let Some(history) = &mut self.history {
            history.written(lpn, self.host_units);
        }
        self.host_units += 1;
        let classified = self.classifier.written(&page);
        let stream = self.stream_of(lpn, classified, self.settings.streams.host);
        self.settings.frontier_of_host(stream)
    }

    /// Returns the stream of a page, one of `streams`. The classifier chooses it, or the map store
    /// if there is no classifier.
    #[inline]
    pub(super) fn stream_of(&self, lpn: Lpn, classified: StreamId, streams: u32) -> StreamId {
        let chosen = if streams > 1 && !self.settings.classified {
            self.map.frontier(lpn, streams).unwrap_or(classified)
        } else {
            classified
        };
        chosen.min(StreamId::new(streams - 1))
    }

    /// Returns the data of a page that the classifier may use.
    #[inline]
    pub(super) fn sorted_page(&self, lpn: Lpn) -> Page {
        let clock = self.host_units;
        match &self.history {
            None => Page { lpn, clock, age: None, from: None, block: None },
            Some(history) => history.page(&self.layout, lpn, self.map.peek(lpn), clock),
        }
    }
}
