//! Layers are transparent: random requests give the same data with and without them, at any depth
//! of stacking, in simulated time and outside it, across power cycles, with stamps and with bytes.

use flashatlas_device::{Cmd, Done, DriveConfig, LayerDef, Reply, Stack, SubmitError};
use flashatlas_host::{LAYERS, STANDARD};
use flashatlas_nand::params::DATA;
use flashatlas_nand::{FrameState, Medium};
use flashatlas_types::{Dur, FrameId, Lba, Lpn, Ps, Rng, SECTOR_BYTES, Seed, Stamp, Tag};
use std::collections::BTreeSet;

/// Every order of layers that a drive takes, with the settings of each variant of the first.
fn stacks(drive: &[&str]) -> Vec<DriveConfig> {
    let mut all: Vec<Vec<&'static LayerDef>> = vec![vec![]];
    let mut longest = all.clone();
    for _ in LAYERS {
        longest = longest
            .iter()
            .flat_map(|below| {
                let free = LAYERS.iter().filter(|l| below.iter().all(|b| b.name != l.name));
                free.map(|layer| [&[layer], &below[..]].concat()).collect::<Vec<_>>()
            })
            .collect();
        all.extend(longest.clone());
    }
    let mut configs = Vec::new();
    for layers in all.into_iter().filter(|layers| !layers.is_empty()) {
        let names: Vec<&str> = layers.iter().map(|l| l.name).collect();
        let variants = layers.iter().map(|l| l.small.len()).max().unwrap_or(1);
        for variant in 0..variants {
            let small = layers.iter().flat_map(|l| l.small[variant.min(l.small.len() - 1)]);
            let mut settings: Vec<String> =
                drive.iter().chain(small).map(|&s| s.to_owned()).collect();
            settings.push(format!("layers={}", names.join(",")));
            // an order that makes no sense is refused; what is refused says why
            match STANDARD.load("tiny", None, &settings) {
                Ok(config) => configs.push(config),
                Err(error) => assert!(error.key == "layers", "{names:?}: {error}"),
            }
        }
    }
    configs
}

/// What a drive without layers would hold.
struct Model {
    stamps: Vec<Stamp>,
    bytes: Option<Vec<u8>>,
    unit_sectors: u32,
}

impl Model {
    fn write(&mut self, lba: u32, sectors: u32, content: u64, data: &[u8]) {
        for unit in lba / self.unit_sectors..(lba + sectors).div_ceil(self.unit_sectors) {
            let (low, high) = (unit * self.unit_sectors, (unit + 1) * self.unit_sectors);
            let (from, to) = (lba.max(low), (lba + sectors).min(high));
            let stamp = &mut self.stamps[unit as usize];
            *stamp = match to - from == self.unit_sectors {
                true => Stamp::whole(content, low - lba),
                false => stamp.overwritten(content, from - low, to - from),
            };
        }
        if let Some(bytes) = &mut self.bytes {
            let start = (lba * SECTOR_BYTES) as usize;
            bytes[start..start + data.len()].copy_from_slice(data);
        }
    }

    fn trim(&mut self, lba: u32, sectors: u32) {
        for unit in lba.div_ceil(self.unit_sectors)..(lba + sectors) / self.unit_sectors {
            self.stamps[unit as usize] = Stamp::ZERO;
            if let Some(bytes) = &mut self.bytes {
                let unit_bytes = (self.unit_sectors * SECTOR_BYTES) as usize;
                bytes[unit as usize * unit_bytes..(unit as usize + 1) * unit_bytes].fill(0);
            }
        }
    }

    fn compare(&self, lba: u32, sectors: u32, reply: &Reply, what: &str) {
        let units = (lba / self.unit_sectors) as usize
            ..((lba + sectors).div_ceil(self.unit_sectors)) as usize;
        assert_eq!(reply.stamps, self.stamps[units], "{what}: read of {sectors} sectors at {lba}");
        if let Some(bytes) = &self.bytes {
            let range = (lba * SECTOR_BYTES) as usize..((lba + sectors) * SECTOR_BYTES) as usize;
            assert!(reply.bytes == bytes[range], "{what}: bytes of {sectors} sectors at {lba}");
        }
    }
}

/// A host that keeps several commands in flight.
struct Host {
    stack: Stack,
    now: Ps,
    in_flight: Vec<u64>,
    timed: bool,
}

impl Host {
    fn submit(&mut self, tag: u64, cmd: Cmd<'_>, reply: &mut Reply, what: &str) {
        self.stack.submit(self.now, Tag(tag), cmd, reply).unwrap_or_else(|e| panic!("{what}: {e}"));
        if self.timed {
            self.in_flight.push(tag);
        }
    }

    fn wait(&mut self, most: usize, what: &str) {
        let mut done: Vec<Done> = Vec::new();
        while self.in_flight.len() > most {
            let at = self
                .stack
                .next_event()
                .unwrap_or_else(|| panic!("{what}: {:?} never complete", self.in_flight));
            self.now = self.now.max(at);
            self.stack.advance(at, &mut done);
            for d in done.drain(..) {
                assert!(d.at <= self.now, "{what}: complete in the future");
                let place = self.in_flight.iter().position(|&t| t == d.tag.0);
                self.in_flight.remove(
                    place.unwrap_or_else(|| panic!("{what}: {} was complete before", d.tag)),
                );
            }
        }
    }
}

fn exercise(config: &DriveConfig, seed: u64, requests: u64) {
    let what = format!(
        "{:?} seed {seed}",
        config.pairs().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>()
    );
    let stack = config.build_stack(Seed(1)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (unit_sectors, sectors) = (stack.unit_sectors(), stack.sectors() as u32);
    assert_eq!(stack.shape(), config.shape());
    let keeps = config.params.get(DATA) == "ram";
    let units = stack.shape().units();
    let mut model = Model {
        stamps: vec![Stamp::ZERO; units as usize],
        bytes: keeps.then(|| vec![0; (sectors * SECTOR_BYTES) as usize]),
        unit_sectors,
    };
    let mut host = Host { stack, now: Ps::ZERO, in_flight: Vec::new(), timed: seed % 2 == 0 };
    host.stack.set_instant(!host.timed);
    let mut rng = Rng::stream(Seed(seed), "layers");
    let mut reply = Reply::default();
    for number in 1..=requests {
        let lba = rng.below(sectors.into()) as u32;
        let most = if rng.below(4) == 0 { 64 } else { 2 * unit_sectors };
        let mut count = (1 + rng.below(most.into()) as u32).min(sectors - lba);
        let mut lba = lba;
        if rng.below(2) == 0 {
            lba -= lba % unit_sectors;
            count = count.div_ceil(unit_sectors).max(1) * unit_sectors;
            count = count.min(sectors - lba);
        }
        let range = Lba(lba.into());
        match rng.below(32) {
            0..16 => {
                let data: Vec<u8> = (0..count * SECTOR_BYTES)
                    .map(|i| (number as u32 * 31 + i / 512) as u8)
                    .collect();
                let fua = rng.below(16) == 0;
                let data_given = keeps.then_some(&data[..]);
                let write = Cmd::Write {
                    lba: range,
                    sectors: count,
                    fua,
                    content: number,
                    data: data_given,
                };
                host.submit(number, write, &mut reply, &what);
                model.write(lba, count, number, &data);
            }
            16..28 => {
                host.submit(number, Cmd::Read { lba: range, sectors: count }, &mut reply, &what);
                model.compare(lba, count, &reply, &format!("{what}, request {number}"));
            }
            28 => {
                host.submit(number, Cmd::Trim { lba: range, sectors: count }, &mut reply, &what);
                model.trim(lba, count);
            }
            29 => host.submit(number, Cmd::Flush, &mut reply, &what),
            30 => {
                host.wait(0, &what);
                if host.timed {
                    let until = host.now.after(Dur::from_us(rng.below(20_000)));
                    host.stack.idle(host.now, until).unwrap();
                    let mut done = Vec::new();
                    host.stack.advance(until, &mut done);
                    assert!(done.is_empty(), "{what}: {done:?}");
                    host.now = until;
                }
            }
            _ => {
                // everything that was flushed is there after the power was off
                host.submit(number, Cmd::Flush, &mut reply, &what);
                host.wait(0, &what);
                if host.timed {
                    host.now = host.now.max(host.stack.drain());
                }
                host.stack.check().unwrap_or_else(|v| panic!("{what}, request {number}: {v}"));
                host.stack.set_instant(false);
                host.stack.power_cycle(config, Seed(1)).unwrap_or_else(|e| panic!("{what}: {e}"));
                host.stack.set_instant(!host.timed);
                host.stack.check().unwrap_or_else(|v| panic!("{what}, mounted at {number}: {v}"));
                for unit in 0..units {
                    let held =
                        host.stack.peek_stamp(Lpn(unit)).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(
                        held, model.stamps[unit as usize],
                        "{what}: unit {unit} after request {number}"
                    );
                }
            }
        }
        host.wait(if host.timed { 8 } else { 0 }, &what);
    }
    host.wait(0, &what);
    host.stack.check().unwrap_or_else(|v| panic!("{what}: {v}"));
    for unit in 0..units {
        assert_eq!(
            host.stack.peek_stamp(Lpn(unit)).unwrap(),
            model.stamps[unit as usize],
            "{what}: unit {unit}"
        );
    }
}

const PAGE: &[&str] = &["drive.blocks=24", "drive.over_provisioning=0.3"];

#[test]
fn layers_change_no_data() {
    let drives: [&[&str]; 7] = [
        &["map.unit=2KiB", "drive.logical_pages=496"],
        &["map.unit=512", "drive.spare_bytes=128", "drive.logical_pages=2048", "cache.bytes=16KiB"],
        &[
            "map.unit=4KiB",
            "drive.frame_channels=2",
            "cache.mode=write-through",
            "drive.logical_pages=248",
        ],
        &[
            "map.unit=2KiB",
            "drive.logical_pages=496",
            "map.store=demand",
            "map.page_bytes=64",
            "map.cache_bytes=200",
        ],
        &[
            "map.unit=512",
            "drive.spare_bytes=128",
            "drive.logical_pages=1536",
            "map.store=dftl",
            "map.page_bytes=64",
        ],
        &[
            "map.unit=2KiB",
            "drive.logical_pages=496",
            "map.store=sftl",
            "map.page_bytes=64",
            "cache.mode=write-through",
        ],
        &["map.unit=2KiB", "drive.logical_pages=496", "map.store=tpftl", "map.page_bytes=64"],
    ];
    let mut tested = BTreeSet::new();
    for drive in drives {
        for data in ["none", "ram"] {
            let data = format!("nand.data={data}");
            for config in stacks(&[PAGE, drive, &[&data]].concat()) {
                tested.extend(config.layers().iter().map(|l| l.name));
                for seed in 0..2 {
                    exercise(&config, seed, 3000);
                }
            }
        }
    }
    assert_eq!(tested.len(), LAYERS.len(), "some layer is tested on no drive: {tested:?}");
}

/// A checkpoint of several parts is written beside the records that follow, and begun anew after
/// each mount: the ring of records never runs over.
#[test]
fn a_checkpoint_keeps_ahead_of_the_ring() {
    let drive = [
        "map.unit=512",
        "drive.spare_bytes=128",
        "drive.logical_pages=4096",
        "drive.blocks=48",
        "layers=hard",
    ];
    let layer = [
        "hard.superpage=1KiB",
        "hard.page=512",
        "hard.segment=2",
        "hard.ring=8",
        "hard.reserve=0.3",
    ];
    let settings: Vec<String> = drive.iter().chain(&layer).map(|&s| s.to_owned()).collect();
    let config = STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    for seed in 0..4 {
        exercise(&config, seed, 3000);
    }
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.set_instant(true);
    let counter = |stack: &Stack, name: &str| {
        let reports = stack.reports();
        reports[0].counters.iter().find(|(key, _)| *key == name).map(|c| c.1).unwrap()
    };
    for number in 1..200u64 {
        let write = Cmd::Write {
            lba: Lba(number * 7 % 1000),
            sectors: 1,
            fua: true,
            content: number,
            data: None,
        };
        stack.submit(Ps::ZERO, Tag(1), write, &mut Reply::default()).unwrap();
        if number % 3 == 0 {
            stack.set_instant(false);
            stack.power_cycle(&config, Seed(1)).unwrap();
            stack.set_instant(true);
        }
    }
    let (parts, checkpoints) =
        (counter(&stack, "checkpoint_chunks"), counter(&stack, "checkpoints"));
    assert!(
        checkpoints > 0 && parts >= 8 * checkpoints,
        "{parts} parts of {checkpoints} checkpoints"
    );
}

const HARD: &[&str] = &[
    "drive.blocks=24",
    "map.unit=2KiB",
    "drive.logical_pages=496",
    "layers=hard",
    "hard.superpage=4KiB",
    "hard.page=2KiB",
    "hard.segment=6",
    "hard.ring=8",
    "hard.low_water=3",
    "hard.reserve=0.4",
];

fn hard(more: &[&str]) -> Result<DriveConfig, String> {
    let settings: Vec<String> = HARD.iter().chain(more).map(|&s| s.to_owned()).collect();
    STANDARD.load("tiny", None, &settings).map_err(|e| e.to_string())
}

#[test]
fn stacks_that_cannot_work_say_why() {
    let refused = |more: &[&str]| hard(more).map(drop).unwrap_err();
    let said = refused(&["drive.logical_pages=495"]);
    assert!(
        said.contains(
            "hard.superpage: 4096 bytes do not divide the 1013760 bytes of the lower device"
        ),
        "{said}"
    );
    let said = refused(&["hard.superpage=5KiB"]);
    assert!(
        said.contains("hard.superpage: 5120 bytes are not several pages of 2048 bytes"),
        "{said}"
    );
    let said = refused(&["hard.page=4KiB"]);
    assert!(
        said.contains("hard.superpage: 4096 bytes are not several pages of 4096 bytes"),
        "{said}"
    );
    let said = refused(&["hard.superpage=1KiB", "hard.page=512"]);
    assert!(said.contains("each write would be a read-modify-write there"), "{said}");
    let said = refused(&["hard.reserve=0.01"]);
    assert!(
        said.contains("hard.reserve: ") && said.contains("reclamation needs 6 at least"),
        "{said}"
    );
    let said = refused(&["hard.ring=7"]);
    assert!(said.contains("hard.ring: 7 records: 8 at least"), "{said}");
    let said = refused(&["hard.segment=400"]);
    assert!(said.contains("hard.segment: ") && said.contains("(allowed: 1 to 338)"), "{said}");
    let said = refused(&["layers=hard,hard"]);
    assert!(said.contains("layers: `hard` is named twice"), "{said}");
    let said = refused(&["layers=hrad"]);
    assert!(said.contains("layers: layer `hrad` is not known; did you mean `hard`?"), "{said}");
    let said = STANDARD.load("tiny", None, &["hard.ring=9".into()]).unwrap_err().to_string();
    assert!(said.contains("hard.ring: belongs to the layer hard, which is not in use"), "{said}");
}

#[test]
fn a_file_may_name_layers_in_a_list() {
    let text = "layers = [\"hard\"]\n[drive]\nbase = \"superpage-sata\"\n";
    let config = STANDARD.load("mine.toml", Some(text), &[]).unwrap();
    assert_eq!(config.layers().iter().map(|l| l.name).collect::<Vec<_>>(), ["hard"]);
    let shape = config.shape();
    assert_eq!(shape.unit_sectors, 8, "pages of 4 KiB over superpages of 16 KiB");
    let error =
        STANDARD.load("mine.toml", Some("layers = [\"hrad\"]\n[drive]\nbase = \"tiny\"\n"), &[]);
    let said = error.unwrap_err().to_string();
    assert!(said.starts_with("mine.toml:1:"), "{said}");
}

/// Another medium under a stack: what it says, if it refuses, and that nothing was programmed.
fn refused(config: &DriveConfig, medium: &Medium) -> String {
    let mut stack = config.build_stack(Seed(1)).unwrap();
    let said = stack.remount(medium.clone(), config, Seed(1)).map(drop).unwrap_err().to_string();
    assert_eq!(stack.ssd().medium().sequence(), medium.sequence(), "{said}");
    said
}

#[test]
fn what_another_wrote_is_left_alone() {
    let config = hard(&[]).unwrap();
    let bare = STANDARD
        .load("tiny", None, &HARD[..3].iter().map(|&s| s.to_owned()).collect::<Vec<_>>())
        .unwrap();
    let mut drive = bare.build(Seed(1)).unwrap();
    drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    let said = refused(&config, &drive.into_medium());
    assert!(
        said.contains("hard: the lower device was not written by this layer: sector 0"),
        "{said}"
    );
    assert!(said.contains("nothing was overwritten"), "{said}");
}

#[test]
fn records_of_another_layout_are_left_alone() {
    let config = hard(&["nand.data=ram"]).unwrap();
    let medium = config.build_stack(Seed(1)).unwrap().into_medium();
    for (setting, key) in [
        ("hard.reserve=0.5", "hard.reserve"),
        ("hard.ring=9", "hard.ring"),
        ("hard.page=1KiB", "hard.page"),
    ] {
        let said = refused(&hard(&["nand.data=ram", setting]).unwrap(), &medium);
        assert!(
            said.contains(&format!("was written with {key} = "))
                && said.contains("nothing was overwritten"),
            "{said}"
        );
    }
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.remount(medium, &config, Seed(1)).unwrap();
}

/// A record that is full when a trim comes is written before the trim: it must not free what the
/// trim vacates.
#[test]
fn a_trim_waits_for_a_record_of_its_own() {
    let drive = [
        "map.unit=512",
        "drive.spare_bytes=128",
        "drive.logical_pages=2048",
        "drive.blocks=24",
        "layers=hard",
    ];
    let layer = [
        "hard.superpage=1KiB",
        "hard.page=512",
        "hard.segment=80",
        "hard.ring=8",
        "hard.reserve=0.2",
    ];
    let settings: Vec<String> = drive.iter().chain(&layer).map(|&s| s.to_owned()).collect();
    let config = STANDARD.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    stack.set_instant(true);
    let mut reply = Reply::default();
    let mut send =
        |stack: &mut Stack, cmd: Cmd<'_>| stack.submit(Ps::ZERO, Tag(1), cmd, &mut reply).unwrap();
    // a record has room for 124 trims of single pages
    for n in 0..124 {
        send(&mut stack, Cmd::Trim { lba: Lba(2 * n), sectors: 1 });
    }
    send(&mut stack, Cmd::Trim { lba: Lba(300), sectors: 200 });
    // what is written now goes to superpages that are free, and none of it is durable
    for n in 0..75 {
        let write = Cmd::Write {
            lba: Lba(600 + 2 * n),
            sectors: 2,
            fua: false,
            content: 9000 + n,
            data: None,
        };
        send(&mut stack, write);
    }
    stack.set_instant(false);
    stack.power_cycle(&config, Seed(1)).unwrap();
    for page in 300..500 {
        let held = stack.peek_stamp(Lpn(page)).unwrap_or_else(|e| panic!("page {page}: {e}"));
        let filled = Stamp::whole(u64::from(page) + 1, 0);
        assert!(held == filled || held == Stamp::ZERO, "page {page} holds {held:?}");
    }
}

/// When each of `writes` pages is complete that are written at once, in microseconds.
fn completions(more: &[&str], writes: u64) -> Vec<u64> {
    let more = [&["cache.mode=write-through"], more].concat();
    let mut stack = hard(&more).unwrap().build_stack(Seed(1)).unwrap();
    for n in 0..writes {
        let write =
            Cmd::Write { lba: Lba(n * 4), sectors: 4, fua: false, content: n + 1, data: None };
        stack.submit(Ps::ZERO, Tag(n), write, &mut Reply::default()).unwrap();
    }
    let mut done = Vec::new();
    stack.advance(Ps(10_000_000_000_000), &mut done);
    assert!(done.is_sorted_by_key(|d| d.at), "{done:?}");
    assert_eq!(done.len() as u64, writes);
    let mut at: Vec<(u64, u64)> = done.iter().map(|d| (d.tag.0, d.at.0 / 1_000_000)).collect();
    at.sort_unstable();
    at.into_iter().map(|(_, at)| at).collect()
}

#[test]
fn time_is_what_the_settings_say() {
    // one page of a superpage of two: it goes out when the timer says so
    let alone =
        completions(&["hard.complete=written", "hard.dispatch_after=3ms", "hard.fill=pad"], 1);
    let written = alone[0] - 3000;
    assert!((1..2000).contains(&written), "{alone:?}");
    assert_eq!(
        completions(&["hard.dispatch_after=3ms", "hard.lookup_time=7us"], 1),
        [7],
        "in the buffer"
    );
    // a buffer at a time: each superpage is written after the one before, and takes as long
    let narrow = completions(&["hard.complete=written", "hard.buffers=1"], 12);
    let wide = completions(&["hard.complete=written", "hard.buffers=64"], 12);
    assert!(narrow.chunks(2).all(|pair| pair[0] == pair[1]), "{narrow:?}");
    let serial = |(i, &at): (usize, &u64)| at.abs_diff((i as u64 / 2 + 1) * narrow[0]) < 3;
    assert!(narrow.iter().enumerate().all(serial), "{narrow:?}");
    assert!(
        3 * wide[11] < 2 * narrow[11],
        "one at a time {narrow:?}, as many as there are {wide:?}"
    );
}

#[test]
fn a_read_that_fails_leaves_nothing_behind() {
    let mut stack = hard(&[]).unwrap().build_stack(Seed(1)).unwrap();
    stack.fill_while(|lpn| u64::from(lpn.0) + 1, &mut |_| true).unwrap();
    let medium = stack.ssd_mut().faults();
    let last = (0..medium.layout().frames())
        .map(FrameId)
        .filter(|&f| medium.state(f) == FrameState::Programmed);
    let frames: Vec<FrameId> = last.collect();
    frames.iter().for_each(|&frame| medium.decay(frame));
    let read = Cmd::Read { lba: Lba(0), sectors: 4 };
    let error = stack.submit(Ps::ZERO, Tag(1), read, &mut Reply::default()).unwrap_err();
    assert!(matches!(error, SubmitError::Ftl(_)), "{error}");
    assert!(stack.failure().is_none(), "other pages may be read");
    stack.drain();
    stack.set_instant(true);
}

/// With bytes, what stands on the drive is all that a mount has: the layer and its table of digests
/// are gone.
#[test]
fn a_mount_needs_the_drive_alone() {
    let config = hard(&["nand.data=ram"]).unwrap();
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.set_instant(true);
    let mut reply = Reply::default();
    let page = |number: u64| vec![number as u8; 2048];
    for number in 1..200u64 {
        let (lba, data) = (Lba(number * 37 % 60 * 4), page(number));
        let write = Cmd::Write { lba, sectors: 4, fua: false, content: number, data: Some(&data) };
        stack.submit(Ps::ZERO, Tag(1), write, &mut reply).unwrap();
    }
    stack.submit(Ps::ZERO, Tag(1), Cmd::Flush, &mut reply).unwrap();
    let contents = stack.contents().unwrap().clone();
    let ssd = config.build_on(stack.into_medium(), Seed(1)).unwrap();
    let mut stack = Stack::over(ssd, &config).unwrap();
    stack.contents().unwrap().learn(&contents); // what the stamps beside the bytes stand for
    stack.set_instant(true);
    for number in 140..200u64 {
        stack
            .submit(
                Ps::ZERO,
                Tag(1),
                Cmd::Read { lba: Lba(number * 37 % 60 * 4), sectors: 4 },
                &mut reply,
            )
            .unwrap();
        assert_eq!(reply.bytes, page(number), "page of write {number}");
    }
    stack.check().unwrap();
}
