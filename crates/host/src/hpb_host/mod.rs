//! The host's side of HPB (Jeong et al., *Improving Flash Storage Performance by Caching Address
//! Mapping Table in Host Memory*, HotStorage 2017; states and thresholds as in
//! `drivers/ufs/core/ufshpb.c` of Linux 5.15 to 6.4). The host caches subregions of the drive's map
//! in its memory, and sends the entry of a page with each read of the page. So the drive need not
//! read its map on flash. The drive's side is in [`flashatlas_device::hpb`].
//!
//! [`regions`] holds the entries, [`requests`] fetches them, [`control`] makes the host's own
//! decisions, and [`link`] encodes the messages between host and drive.

mod control;
mod link;
mod regions;
mod requests;
mod settings;

use crate::notes::{HPB_HOST_LOOKS, HPB_ONE_COMMAND, HPB_PLAIN};
use flashatlas_device::hpb::Refusal;
use flashatlas_device::hpb::params::KEY;
use flashatlas_device::pieces::units;
use flashatlas_device::{
    Build, Cmd, Device, DeviceShape, Done, DriveConfig, LayerDef, LayerLimit, LayerReport, Reply,
    Ssd, Storage, Submission, SubmitError,
};
use flashatlas_types::{Lba, Lpn, Mechanism, Ps, Seed, StampSum, Tag};
use link::Link;
use regions::{Miss, Regions};
use requests::Requests;
use settings::HpbSettings;
use std::ops::Range;

pub const DEF: LayerDef = LayerDef {
    name: "hpb-host",
    summary: "keeps a part of the drive's map in host memory, and sends map entries along with \
              reads (HPB)",
    paper: "Jeong et al., Improving Flash Storage Performance by Caching Address Mapping Table in \
            Host Memory (HotStorage 2017)",
    params: settings::PARAMS,
    fits: settings::fits,
    build: Build::Over(|config, device| Ok(Box::new(HpbHost::meet(config, device)?))),
    mount_limit: |_, _| LayerLimit { reads: 0, writes: 0 },
    small: &[
        &[
            "hpb.region=16KiB",
            "hpb.subregion=8KiB",
            "hpb.host_bytes=256",
            "hpb.max_read=4KiB",
            "hpb.activation_reads=2",
            "hpb.refresh_reads=1",
        ],
        &[
            "hpb.region=16KiB",
            "hpb.subregion=16KiB",
            "hpb.host_bytes=1KiB",
            "hpb.max_read=2KiB",
            "hpb.wire=samsung",
            "hpb.control=host",
            "hpb.protect=encrypted",
            "hpb.activation_reads=1",
            "hpb.eviction_enter=2",
            "hpb.eviction_exit=100",
            "hpb.read_timeout=2ms",
            "hpb.poll=1ms",
            "hpb.timeout_expiries=2",
            "hpb.pinned_regions=1",
            "hpb.requests=2",
        ],
        &[
            "hpb.region=8KiB",
            "hpb.subregion=8KiB",
            "hpb.host_bytes=2KiB",
            "hpb.max_read=2KiB",
            "hpb.update=piggyback",
            "hpb.protect=plain",
            "hpb.wire=paper",
            "hpb.activation_reads=1",
            "hpb.refresh_reads=1",
            "hpb.pairs=2",
            "hpb.changes=5",
            "hpb.active_regions=3",
        ],
        &[
            "hpb.region=32KiB",
            "hpb.subregion=16KiB",
            "hpb.host_bytes=2KiB",
            "hpb.max_read=8KiB",
            "hpb.dirty=page",
            "hpb.activation_reads=1",
            "hpb.refresh_reads=1",
            "hpb.pressure=1ms=512,3ms=0,5ms=1KiB",
        ],
    ],
    mechanisms: &[
        Mechanism::new("read with an entry", "layers.hpb-host.hits"),
        Mechanism::new("region fetched", "layers.hpb-host.map_requests"),
        Mechanism::new("notice to activate", "layers.hpb-host.notices_active"),
        Mechanism::new("notice to give back", "layers.hpb-host.notices_inactive"),
        Mechanism::new("region fetched again", "layers.hpb-host.refetches"),
        Mechanism::new(
            "entry refused because its page was written",
            "layers.hpb-host.refused_dirty",
        ),
        Mechanism::new("region evicted from host memory", "layers.hpb-host.evictions"),
        Mechanism::new("memory pressure", "layers.hpb-host.pressure_evictions")
            .without(&["hpb.pressure="]),
        Mechanism::new("pairs with responses", "layers.hpb-host.pairs")
            .without(&["hpb.update=fetch"]),
        Mechanism::new("regions that age", "layers.hpb-host.expired"),
        Mechanism::new("commands in a wire format", "layers.hpb-host.wire_commands")
            .without(&["hpb.wire=off"]),
    ],
};

/// Bit that is set only in the tags of the layer's own commands.
const OWN: u64 = 1 << 63;

/// Counters of the layer.
#[derive(Clone, Copy, Default)]
struct Counters {
    reads: u64,
    /// Reads with entries.
    hits: u64,
    /// Reads without entries, by [`Miss`].
    misses: [u64; Miss::ALL.len()],
    map_requests: u64,
    map_bytes: u64,
    /// Valid subregions that were fetched again.
    refetches: u64,
    notices_active: u64,
    notices_inactive: u64,
    notices_reset: u64,
    pairs: u64,
    /// Regions dropped to make room for other regions.
    evictions: u64,
    /// Regions dropped because the drive asked for it.
    inactivated: u64,
    /// Regions dropped because the memory limit shrank.
    pressure_evictions: u64,
    /// Regions dropped because their timer expired.
    expired: u64,
    /// Subregions that were not fetched because memory had no room.
    no_room: u64,
    /// Subregions that the drive could not read.
    failed_requests: u64,
}

/// The layer.
struct HpbHost {
    device: Box<dyn Storage>,
    settings: HpbSettings,
    regions: Regions,
    requests: Requests,
    link: Link,
    counters: Counters,
    /// `true` in instant mode, in which no time passes and responses arrive immediately.
    instant: bool,
    /// Time from which on the next command makes the host check its clocks.
    look_at: Ps,
    started: bool,
    failed: Option<SubmitError>,
    done: Vec<Done>,
}

impl HpbHost {
    fn meet(config: &DriveConfig, mut device: Box<dyn Storage>) -> Result<HpbHost, SubmitError> {
        let params = &config.params;
        let settings =
            HpbSettings::new(params, device.shape()).expect("the configuration is checked");
        device.ssd_mut().export_map(settings.terms.clone(), Seed(params.get(KEY)))?;
        Ok(HpbHost {
            device,
            regions: Regions::new(&settings),
            link: Link::new(settings.wire, &settings.terms),
            settings,
            requests: Requests::default(),
            counters: Counters::default(),
            instant: true,
            look_at: Ps::ZERO,
            started: false,
            failed: None,
            done: Vec::new(),
        })
    }

    /// Returns the pages that a range of sectors touches, completely or partly.
    fn pages(&self, (lba, sectors): (Lba, u32)) -> Range<u32> {
        let touched = units(lba, sectors, self.device.unit_sectors());
        touched.start as u32..touched.end as u32
    }

    fn read(
        &mut self,
        now: Ps,
        tag: Tag,
        range: (Lba, u32),
        after: &[Tag],
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        let (lba, sectors) = range;
        let pages = self.pages(range);
        let known = if sectors <= self.settings.terms.max_sectors {
            self.regions.entries(Lpn(pages.start), pages.end - pages.start)
        } else {
            Err(Miss::Long)
        };
        let (cmd, miss) = match known {
            Ok(entries) => {
                let entries = self.link.read(Lpn(pages.start), entries);
                (Cmd::HpbRead { lba, sectors, entries }, None)
            }
            Err(miss) => (Cmd::Read { lba, sectors }, Some(miss)),
        };
        self.device.submit_after(Submission { now, tag, cmd, after }, reply)?;
        match miss {
            None => self.counters.hits += 1,
            Some(miss) => self.counters.misses[miss as usize] += 1,
        }
        self.counters.reads += 1;
        self.count_read(now, Lpn(pages.start));
        Ok(())
    }
}

impl Device for HpbHost {
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        let Submission { now, tag, cmd, after } = submission;
        reply.clear();
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.device.shape().accepts(&cmd)?;
        if now >= self.look_at {
            self.look_around(now);
        }
        match cmd {
            // entries from a layer above are ignored, because this layer sends its own entries
            Cmd::Read { lba, sectors } | Cmd::HpbRead { lba, sectors, .. } => {
                self.read(now, tag, (lba, sectors), after, reply)?;
            }
            Cmd::ReadBuffer { .. } | Cmd::WriteBuffer { .. } => return cmd.asks_within(0, 0),
            Cmd::Write { .. } | Cmd::WriteUnits { .. } | Cmd::Trim { .. } => {
                let range = cmd.range(self.device.unit_sectors()).expect("the command has a range");
                let pages = self.pages(range);
                self.written(pages.clone());
                self.count_write(&pages);
                self.device.submit_after(submission, reply)?;
            }
            Cmd::Flush => self.device.submit_after(submission, reply)?,
        }
        self.sent(now, tag, reply);
        self.pump(now);
        Ok(())
    }

    fn next_event(&self) -> Option<Ps> {
        self.device.next_event()
    }

    fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        if self.requests.expects_any() {
            let mut done = std::mem::take(&mut self.done);
            // the device handles one event at a time, because the host may send commands between
            // two events
            while self.requests.expects_any()
                && let Some(at) = self.device.next_event().filter(|&at| at <= until)
            {
                self.device.advance(at, &mut done);
                self.arrived(at, &mut done, out);
            }
            self.done = done;
        }
        // from here on, only commands from above can complete
        self.device.advance(until, out);
    }

    fn advance_to_completion(&mut self, until: Ps, out: &mut Vec<Done>) -> Ps {
        let before = out.len();
        while self.requests.expects_any()
            && let Some(at) = self.next_event().filter(|&at| at <= until)
        {
            self.advance(at, out);
            if out.len() > before {
                return at;
            }
        }
        self.device.advance_to_completion(until, out)
    }

    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        let (mut at, mut none) = (now, Vec::new());
        // the layer's own commands come first, because the drive is idle only afterwards
        while self.requests.own_in_flight()
            && let Some(event) = self.next_event().filter(|&event| event <= until)
        {
            self.advance(event, &mut none);
            at = at.max(event);
        }
        assert!(none.is_empty(), "a command from above was in flight in idle time");
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.device.idle(at, until),
        }
    }

    fn shape(&self) -> DeviceShape {
        self.device.shape()
    }
}

impl Storage for HpbHost {
    fn lower(&self) -> &[Box<dyn Storage>] {
        std::slice::from_ref(&self.device)
    }

    fn lower_mut(&mut self) -> &mut [Box<dyn Storage>] {
        std::slice::from_mut(&mut self.device)
    }

    fn into_drives(self: Box<Self>) -> Vec<Ssd> {
        self.device.into_drives()
    }

    fn own_failure(&self) -> Option<SubmitError> {
        self.failed.clone()
    }

    fn power_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.regions = Regions::new(&self.settings);
        self.requests = Requests::default();
        (self.look_at, self.started, self.instant) = (Ps::ZERO, false, false);
        let mounted = self.device.power_on(config, seed);
        self.failed = mounted.as_ref().err().cloned();
        mounted
    }

    fn set_instant(&mut self, on: bool) {
        self.instant = on;
        self.device.set_instant(on);
    }

    fn sum_of_stamps(&self) -> Option<StampSum> {
        self.device.sum_of_stamps() // units have the same addresses on the device below
    }

    fn report(&self) -> Option<LayerReport> {
        let c = &self.counters;
        let mut counters = vec![("reads", c.reads), ("hits", c.hits)];
        counters.extend(Miss::ALL.iter().map(|&miss| (miss.name(), c.misses[miss as usize])));
        counters.extend([
            ("map_requests", c.map_requests),
            ("map_bytes", c.map_bytes),
            ("refetches", c.refetches),
            ("notices_active", c.notices_active),
            ("notices_inactive", c.notices_inactive),
            ("notices_reset", c.notices_reset),
            ("pairs", c.pairs),
            ("evictions", c.evictions),
            ("inactivated", c.inactivated),
            ("pressure_evictions", c.pressure_evictions),
            ("expired", c.expired),
            ("no_room", c.no_room),
            ("failed_requests", c.failed_requests),
            ("wire_commands", self.link.commands),
            ("wire_bytes", self.link.bytes),
        ]);
        if let Some((drive, _)) = self.device.ssd().hpb() {
            counters.push(("valid_entries", drive.valid_entries));
            counters
                .extend(Refusal::ALL.iter().map(|&why| (why.name(), drive.refused[why as usize])));
            counters.extend([
                ("exported_entries", drive.exported_entries),
                ("dirtied", drive.dirtied),
                ("resets", drive.resets),
            ]);
        }
        let (entries, bits) = self.regions.most_bytes();
        let mut approximations = vec![HPB_HOST_LOOKS.note()];
        if self.settings.sends_pages_one_by_one() {
            approximations.push(HPB_ONE_COMMAND.note());
        }
        if self.settings.trusts_the_host() {
            approximations.push(HPB_PLAIN.note());
        }
        Some(LayerReport {
            unmapped_units: 0,
            layer: DEF.name,
            counters,
            memory: vec![
                ("map entries, at most", entries),
                ("bits of pages written since, for the map", bits),
            ],
            approximations,
        })
    }

    fn reset_own_counters(&mut self) {
        self.counters = Counters::default();
        (self.link.commands, self.link.bytes) = (0, 0);
    }
}
