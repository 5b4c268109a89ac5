//! HARD, a host driver that turns small random writes into superpage writes (Jang and Shin, *HARD:
//! Host-Level Address Remapping Driver for Solid-State Disk*, chapter 14).
//!
//! A drive that maps superpages reads and programs a whole superpage for every small write. So the
//! host gathers small writes in a *virtual superpage* (VSP), and writes the whole VSP to an address
//! that the host chooses. The host stores the map from the file system's pages to their places.
//!
//! The paper does not treat power failures. Here the map is also stored on the drive itself, as
//! checkpoints and a ring of log records ([`log`]). A superpage whose pages have all moved is
//! written again only after the log has recorded these moves.
//!
//! [`write`] gathers pages and dispatches superpages, [`read`] looks up pages and splits reads,
//! [`reclaim`] frees superpages (the paper's VAR), and [`mount`] loads the map from the drive.

mod buffer;
mod format;
mod log;
mod lower;
mod map;
mod mount;
mod read;
mod reclaim;
mod settings;
mod write;

use crate::hard::settings::VICTIM;
use crate::notes::{HARD_LOOKUPS, HARD_PAGE_ENTRIES};
use buffer::Buffer;
use flashatlas_device::pieces::Content;
use flashatlas_device::{
    Build, Cmd, Contents, Device, DeviceShape, Done, DriveConfig, LayerDef, LayerLimit,
    LayerReport, LayersBelow, Reply, Ssd, Storage, Submission, SubmitError,
};
use flashatlas_ftl::victims::VictimDef;
use flashatlas_types::{Dur, Lpn, Mechanism, Ps, Seed, Stamp, Tag, Violation};
use log::Log;
use lower::LowerDevice;
use map::Map;
use settings::{Areas, HardSettings};
use smallvec::SmallVec;
use std::collections::VecDeque;

pub const DEF: LayerDef = LayerDef {
    name: "hard",
    summary: "gathers small random writes into superpage writes, and keeps the map of the places \
              of pages",
    paper: "Jang and Shin, HARD: Host-Level Address Remapping Driver for Solid-State Disk (2012), \
            chapter 14",
    params: settings::PARAMS,
    fits: |params, lower| Ok(Areas::new(params, lower)?.shape()),
    build: Build::Over(|config, device| Ok(Box::new(Hard::mount(config, device)?))),
    mount_limit: |params, lower| {
        let areas = Areas::new(params, lower).expect("the configuration is checked");
        let units = u64::from(areas.superpage_sectors() / lower.shape.unit_sectors);
        let records = u64::from(1 + 2 + areas.chunks + areas.ring);
        // a mount of a blank device reads the whole device and writes a superblock
        LayerLimit { reads: (records + u64::from(areas.superpages)) * units, writes: units }
    },
    small: &[
        &[
            "hard.superpage=4KiB",
            "hard.page=2KiB",
            "hard.segment=6",
            "hard.ring=8",
            "hard.low_water=3",
            "hard.reserve=0.4",
        ],
        &[
            "hard.superpage=8KiB",
            "hard.page=1KiB",
            "hard.segment=2",
            "hard.ring=8",
            "hard.low_water=3",
            "hard.reserve=0.4",
            "hard.victim=fifo",
            "hard.fill=pad",
            "hard.trim=false",
        ],
    ],
    mechanisms: &[
        Mechanism::new("merge into a superpage", "layers.hard.merged_pages"),
        Mechanism::new("superpage dispatched full", "layers.hard.full_superpages"),
        Mechanism::new("dispatch by timeout", "layers.hard.timed_out_superpages"),
        Mechanism::new("superpage sent by a FLUSH", "layers.hard.flushed_superpages"),
        Mechanism::new("filled from reclamation", "layers.hard.filled_pages")
            .without(&["hard.fill=pad"]),
        Mechanism::new("whole superpage passed through", "layers.hard.direct_superpages"),
        Mechanism::new("reclamation", "layers.hard.reclaimed_pages"),
        Mechanism::new("read from a buffer", "layers.hard.buffer_hits"),
        Mechanism::new("checkpoint of the map", "layers.hard.checkpoints"),
    ],
};

/// Returns the earlier of two times, either of which may be `None`.
fn earlier(one: Option<Ps>, other: Option<Ps>) -> Option<Ps> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

/// Counters of the layer.
#[derive(Clone, Copy, Default)]
struct Counters {
    /// Pages that went through the merge buffer.
    merged_pages: u64,
    /// Pages that replaced an older version in the merge buffer.
    replaced_pages: u64,
    /// Writes of less than a page, for which the other sectors of the page were read.
    partial_pages: u64,
    /// Superpages that a request covered completely.
    direct_superpages: u64,
    /// Superpages dispatched because they were full.
    full: u64,
    /// Superpages dispatched because of a FLUSH or FUA.
    flushed: u64,
    /// Superpages dispatched by the timer.
    timed_out: u64,
    /// Pages without content in dispatched superpages.
    padded_pages: u64,
    /// Reclaimed pages in dispatched superpages.
    filled_pages: u64,
    /// Entries looked up or changed.
    lookups: u64,
    /// Pages that were read but never written.
    unmapped_units: u64,
    /// Pages read from the merge buffer.
    buffer_hits: u64,
    /// Read requests.
    reads: u64,
    reclaim_rounds: u64,
    reclaimed_pages: u64,
    summaries: u64,
    journals: u64,
    checkpoints: u64,
    checkpoint_chunks: u64,
}

/// The layer.
struct Hard {
    areas: Areas,
    settings: HardSettings,
    victim: &'static VictimDef,
    lower: LowerDevice,
    map: Map,
    buffer: Buffer,
    log: Log,
    /// Superpage writes in the order in which they were sent. The number in flight is limited.
    sent: VecDeque<Tag>,
    /// Commands for which the current command waits.
    sent_after: SmallVec<[Tag; 4]>,
    counters: Counters,
    /// Latest time of a call of the layer.
    latest: Ps,
    /// Error that stopped the layer. Every later command gets this error.
    failed: Option<SubmitError>,
}

impl Hard {
    /// Returns the time at which the timer dispatches the buffer, if the timer runs.
    fn timer(&self) -> Option<Ps> {
        let runs = !self.buffer.is_empty() && !self.lower.instant && self.failed.is_none();
        // pages that were gathered in instant mode may be overdue, and are then due immediately
        runs.then(|| self.buffer.since.after(self.settings.dispatch_after).max(self.latest))
    }

    /// Returns the next event of the layer itself, without the lower device.
    fn own_event(&self) -> Option<Ps> {
        earlier(self.lower.completions.next_due(), self.timer())
    }

    fn fire_timer(&mut self, now: Ps) {
        if self.timer().is_some_and(|at| at <= now) {
            self.counters.timed_out += 1;
            self.failed = self.dispatch(now).err();
        }
    }

    fn carry_out(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        match cmd {
            // the layer has no map entries for a host above, so it ignores entries
            Cmd::Read { lba, sectors } | Cmd::HpbRead { lba, sectors, .. } => {
                self.read(now, tag, lba, sectors, reply)
            }
            Cmd::ReadBuffer { .. } | Cmd::WriteBuffer { .. } => cmd.asks_within(0, 0),
            Cmd::Write { lba, sectors, fua, content, data } => {
                self.write(now, tag, (lba, sectors), fua, Content::Named(content), data)
            }
            Cmd::WriteUnits { lba, fua, stamps, data } => {
                let sectors = stamps.len() as u32 * self.areas.page_sectors;
                self.write(now, tag, (lba, sectors), fua, Content::Stamps(stamps), data)
            }
            Cmd::Trim { lba, sectors } => self.trim(now, tag, lba, sectors),
            Cmd::Flush => self.flush(now, tag),
        }
    }

    /// Makes command `tag` complete when the commands `lower`, and the commands after which `tag`
    /// was sent, are complete.
    ///
    /// If none of these commands is in flight, `tag` takes the time of its `lookups` lookups.
    fn complete(&mut self, now: Ps, tag: Tag, lower: &[Tag], lookups: u32) {
        self.counters.lookups += u64::from(lookups);
        if !self.lower.instant {
            let alone = now.after(Dur(self.settings.lookup_time.0 * u64::from(lookups)));
            if self.sent_after.is_empty() {
                self.lower.completions.wait(tag, lower, alone)
            } else {
                self.lower.completions.wait(tag, &[lower, &self.sent_after].concat(), alone)
            }
        }
    }
}

impl Device for Hard {
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        let Submission { now, tag, cmd, after } = submission;
        reply.clear();
        self.shape().accepts(&cmd)?;
        self.latest = self.latest.max(now);
        self.map.at.now = self.latest;
        self.fire_timer(now);
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.sent_after.clear();
        for &tag in after {
            self.sent_after.extend(self.lower.completions.behind(tag));
        }
        let done = self.carry_out(now, tag, cmd, reply);
        if let (true, Err(error)) = (cmd.changes(), &done) {
            self.failed = Some(error.clone());
        }
        done
    }

    fn next_event(&self) -> Option<Ps> {
        earlier(self.lower.device.next_event(), self.own_event())
    }

    fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        // the lower device is advanced to each event of the layer itself, and finally to `until`
        while let Some(at) = self.own_event().filter(|&at| at <= until) {
            self.latest = self.latest.max(at);
            self.lower.advance(at, out);
            self.fire_timer(at);
        }
        self.latest = self.latest.max(until);
        self.lower.advance(until, out);
    }

    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        self.latest = self.latest.max(now);
        let (mut at, mut none) = (now, Vec::new());
        // the layer's own work comes first, because the lower device is idle only afterwards
        while let Some(event) = self.next_event().filter(|&event| event <= until)
            && !(self.lower.completions.is_idle() && self.buffer.is_empty())
        {
            self.advance(event, &mut none);
            at = at.max(event);
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
        }
        assert!(none.is_empty(), "a command from above was in flight in idle time");
        self.latest = self.latest.max(until);
        self.lower.device.idle(at, until)
    }

    fn shape(&self) -> DeviceShape {
        self.areas.shape()
    }
}

impl Storage for Hard {
    fn lower(&self) -> &[Box<dyn Storage>] {
        std::slice::from_ref(&self.lower.device)
    }

    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>] {
        std::slice::from_mut(&mut self.lower.device)
    }

    fn into_drives(self: Box<Self>) -> Vec<Ssd> {
        self.lower.device.into_drives()
    }

    fn own_failure(&self) -> Option<SubmitError> {
        self.failed.clone()
    }

    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.lower.forget_flights();
        self.sent.clear();
        if let Err(error) = self.lower.device.power_on(config, seed) {
            self.failed = Some(error.clone());
            return Err(error);
        }
        self.lower.device.set_instant(true);
        self.lower.instant = true;
        let mounted = self.load();
        self.lower.instant = false;
        self.lower.device.set_instant(false);
        self.failed = mounted.as_ref().err().cloned();
        mounted
    }

    fn set_instant(&mut self, on: bool) {
        if self.failed.is_some() {
            self.lower.forget_flights(); // these commands never complete
        }
        if on && self.lower.completions.is_in_flight(self.buffer.tag) {
            self.lower.completions.refused(self.buffer.tag); // the gathered pages are sent later
        }
        assert!(self.lower.completions.is_idle(), "commands are in flight");
        self.lower.instant = on;
        self.lower.device.set_instant(on);
        if !on && !self.buffer.is_empty() {
            self.buffer.tag = self.lower.reserve_tag(); // the buffer needs a tag that is in flight
        }
    }

    fn check_own(&self) -> Result<(), Violation> {
        self.map.check()?;
        let (exported, valid) = (u64::from(self.areas.exported), self.map.valid_count());
        Violation::unless(
            valid <= exported,
            "at most the exported number of pages is valid",
            || format!("{valid} pages are valid, but {exported} are exported"),
        )?;
        self.log.check(&self.areas)
    }

    fn peek_stamp(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        if let Some(place) = self.buffer.find(unit.0) {
            return Ok(self.buffer.stamps[place]);
        }
        match self.map.get(unit.0) {
            None => Ok(Stamp::ZERO),
            Some(vpn) => self.lower.page_held(self.sector_of(vpn)),
        }
    }

    fn forgets_trims(&self) -> bool {
        false // the log records trims
    }

    fn own_contents(&mut self) -> Option<&mut Contents> {
        Some(&mut self.lower.contents)
    }

    fn report(&self) -> Option<LayerReport> {
        let (c, t) = (&self.counters, &self.lower.counters);
        Some(LayerReport {
            layer: DEF.name,
            unmapped_units: c.unmapped_units,
            counters: vec![
                ("merged_pages", c.merged_pages),
                ("replaced_pages", c.replaced_pages),
                ("partial_pages", c.partial_pages),
                ("direct_superpages", c.direct_superpages),
                ("full_superpages", c.full),
                ("flushed_superpages", c.flushed),
                ("timed_out_superpages", c.timed_out),
                ("padded_pages", c.padded_pages),
                ("filled_pages", c.filled_pages),
                ("lookups", c.lookups),
                ("buffer_hits", c.buffer_hits),
                ("reads", c.reads),
                ("reclaim_rounds", c.reclaim_rounds),
                ("reclaimed_pages", c.reclaimed_pages),
                ("summaries", c.summaries),
                ("journals", c.journals),
                ("checkpoints", c.checkpoints),
                ("checkpoint_chunks", c.checkpoint_chunks),
                ("lower_reads", t.reads),
                ("lower_writes", t.writes),
                ("lower_flushes", t.flushes),
                ("lower_trims", t.trims),
                ("lower_read_bytes", t.read_bytes),
                ("lower_write_bytes", t.write_bytes),
            ],
            memory: vec![
                ("map and reverse map", self.map.table_bytes()),
                ("list of superpages", self.map.list_bytes()),
                (
                    "superpages under way, at most",
                    self.settings.buffers as u64 * u64::from(self.areas.superpage_bytes()),
                ),
            ],
            approximations: vec![HARD_LOOKUPS.note(), HARD_PAGE_ENTRIES.note()],
        })
    }

    fn reset_own_counters(&mut self) {
        self.counters = Counters::default();
        self.lower.counters = lower::LowerTraffic::default();
    }
}

impl Hard {
    fn mount(config: &DriveConfig, mut device: Box<dyn Storage>) -> Result<Hard, SubmitError> {
        let params = &config.params;
        device.drives_mut().into_iter().for_each(|drive| drive.keep_awaited());
        let lower = LayersBelow { shape: device.shape(), layers: &[], registry: &config.registry };
        let areas = Areas::new(params, &lower).expect("the configuration is checked");
        let settings = HardSettings::new(params, &areas);
        let victim = config.registry.ftl.victim(params.get(VICTIM));
        let victim = victim.expect("the configuration is checked");
        let mut hard = Hard {
            lower: LowerDevice::new(device, &areas, settings.keep_bytes),
            map: Map::new(&areas, victim),
            buffer: Buffer::new(areas.pages, areas.page_sectors, settings.keep_bytes),
            log: Log::default(),
            sent: VecDeque::new(),
            sent_after: SmallVec::new(),
            counters: Counters::default(),
            latest: Ps::ZERO,
            failed: None,
            victim,
            settings,
            areas,
        };
        hard.load()?;
        Ok(hard)
    }

    /// Returns the first sector, on the lower device, of a virtual page.
    fn sector_of(&self, vpn: u32) -> u64 {
        let first = u64::from(self.areas.data_first()) * u64::from(self.areas.superpage_sectors());
        first + u64::from(vpn) * u64::from(self.areas.page_sectors)
    }
}
