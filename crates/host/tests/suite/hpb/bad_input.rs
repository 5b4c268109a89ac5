//! Tests that bad input is refused with a clear message, and that all other input fits the wire
//! formats.

use super::{config, lba, stack, write};
use flashatlas_device::{Cmd, Device, Reply, Stack, SubmitError};
use flashatlas_host::STANDARD;
use flashatlas_host::wire::ReadFlags;
use flashatlas_host::wire::jedec::{HpbRead, ReadBuffer};
use flashatlas_types::{Lba, Ps, Seed, Stamp, Tag};

const OVER_HARD: &[&str] = &[
    "layers=hpb-host,hard",
    "hard.superpage=4KiB",
    "hard.page=2KiB",
    "hard.low_water=3",
    "hard.reserve=0.4",
];

#[test]
fn stacks_that_cannot_work_say_why() {
    let refused = |more: &[&str]| config(more).map(drop).unwrap_err();
    let cases: &[(&[&str], &str)] = &[
        (
            &["hpb.host_bytes=0"],
            "hpb.host_bytes: 0 bytes are less than one subregion needs: its entries (16 pages)",
        ),
        (&["hpb.host_bytes=135"], "leave the layer out"),
        (
            &["hpb.subregion=5KiB"],
            "hpb.subregion: 5120 bytes are not a whole number of pages of the drive (2048 bytes)",
        ),
        (&["hpb.max_read=1KiB"], "hpb.max_read: 1024 bytes are not a whole number"),
        (
            &["hpb.region=48KiB"],
            "hpb.region: 49152 bytes are not a whole number of subregions of 32768",
        ),
        (&["hpb.update=piggyback"], "hpb.update: `piggyback` needs hpb.protect = plain"),
        (
            &["hpb.update=piggyback", "hpb.protect=plain", "hpb.dirty=page"],
            "`piggyback` needs hpb.dirty = group",
        ),
        (
            &["hpb.update=piggyback", "hpb.protect=plain"],
            "hpb.wire is refused: only the format `paper` has entries in responses",
        ),
        (&["hpb.wire=paper"], "hpb.wire: the format `paper` has entries of 4 bytes"),
        (&["hpb.max_read=512KiB"], "hpb.max_read: an HPB READ names at most 255 pages"),
        (
            &["hpb.pinned_regions=99", "hpb.host_bytes=272"],
            "hpb.pinned_regions: the entries of 31 pinned subregions take 4216",
        ),
        (
            &["hpb.pinned_regions=1", "hpb.pressure=1s=100"],
            "hpb.pinned_regions: the entries of 2 pinned subregions",
        ),
        (
            &["hpb.pressure=1s"],
            "hpb.pressure: `1s`: write a time and a size, such as 2s=1MiB,5s=256KiB",
        ),
        (&["hpb.pressure=2s=1KiB,1s=2KiB"], "write the times in ascending order"),
        (&["hpb.pressure=2x=1KiB"], "hpb.pressure: "),
        (&["map.store=dftl", "map.cache_bytes=100", "hpb.protect=sealed"], "hpb.protect: "),
        (OVER_HARD, "hpb-host must be directly above the drive"),
        (OVER_HARD, "use `hard,hpb-host`"),
    ];
    for (settings, said) in cases {
        let found = refused(settings);
        assert!(found.contains(said), "{settings:?}: {found}");
    }
    let load = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
        STANDARD.load("tiny", None, &settings).map(drop).unwrap_err().to_string()
    };
    let said = load(&["layers=hpb-host"]);
    assert!(said.contains("map.store = dram exports no map pages"), "{said}");
    let settings =
        ["layers=hpb-host", "hpb.subregion=8GiB", "hpb.region=8GiB", "hpb.host_bytes=64MiB"];
    let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    let said = STANDARD.load("ufs-128gb", None, &settings).unwrap_err().to_string();
    assert!(said.contains("take 16777216 bytes, but READ BUFFER has 24 bits"), "{said}");
    let said = load(&["layers=hpb-host", "ftl.scheme=fast"]);
    assert!(said.contains("the scheme `fast` exports no map of pages"), "{said}");
    assert!(load(&["hpb.key=3"]).contains("belongs to the layer hpb-host, which is not in use"));
}

#[test]
fn there_is_no_map_where_none_is_handed_out() {
    let submit = |stack: &mut Stack, cmd: Cmd<'_>| {
        stack.submit(Ps::ZERO, Tag(1), cmd, &mut Reply::default())
    };
    let mut with = stack(&[]);
    let drive = with.ssd_mut();
    let mut ask = |cmd: Cmd<'_>| {
        drive.submit(Ps::ZERO, Tag(1), cmd, &mut Reply::default()).unwrap_err().to_string()
    };
    assert_eq!(
        ask(Cmd::ReadBuffer { subregion: 31 }),
        "subregion 31 of the map does not exist: the map has 31 of them, counted from 0"
    );
    assert_eq!(
        ask(Cmd::WriteBuffer { region: Some(16) }),
        "region 16 of the map does not exist: the map has 16 of them, counted from 0"
    );
    // HPB commands from above the host's layer and to a drive without this layer are refused
    let none = SubmitError::NoMap { what: "subregion", number: 0, count: 0 };
    assert_eq!(submit(&mut with, Cmd::ReadBuffer { subregion: 0 }), Err(none.clone()));
    let mut without = STANDARD.load("tiny", None, &[]).unwrap().build_stack(Seed(1)).unwrap();
    assert_eq!(submit(&mut without, Cmd::ReadBuffer { subregion: 0 }), Err(none.clone()));
    assert!(none.to_string().contains("exports no map"));
    // without the layer, a read with an entry is an ordinary read
    submit(&mut without, write(0, 7)).unwrap();
    let mut reply = Reply::default();
    without
        .submit(
            Ps::ZERO,
            Tag(2),
            Cmd::HpbRead { lba: lba(0), sectors: 4, entries: &[5] },
            &mut reply,
        )
        .unwrap();
    assert_eq!(reply.stamps, [Stamp::whole(7, 0)]);
}

/// Commands and responses of the preset with the largest drive are the same after encoding and
/// decoding in JEDEC's format.
#[test]
fn what_passes_between_the_sides_fits_the_wire() {
    let config = STANDARD
        .load("ufs-128gb", None, &["layers=hpb-host".into(), "hpb.region=32MiB".into()])
        .unwrap();
    let mut stack = config.build_stack(Seed(1)).unwrap();
    stack.set_instant(true);
    let drive = stack.ssd_mut();
    let last = drive.sectors() / 8 - 1;
    let mut reply = Reply::default();
    let mut submit = |cmd: Cmd<'_>| {
        drive.submit(Ps::ZERO, Tag(1), cmd, &mut reply).map(|()| reply.clone()).unwrap()
    };
    submit(Cmd::Write { lba: Lba(last * 8), sectors: 8, fua: true, content: 9, data: None });
    // a region has two subregions, so subregion 8,191 is the second one of region 4,095
    let fetch = ReadBuffer { region: 4095, subregion: 1, bytes: 4096 * 8 };
    let fetch = ReadBuffer::decode(&fetch.encode()).unwrap();
    let subregion = u32::from(fetch.region) * 2 + u32::from(fetch.subregion);
    let entries = submit(Cmd::ReadBuffer { subregion }).entries;
    assert_eq!(entries.len() as u32 * 8, fetch.bytes);
    let flags = ReadFlags::default();
    let read = HpbRead { flags, lba: last as u32, entry: entries[4095], blocks: 1, read_id: 0 };
    let read = HpbRead::decode(&read.encode()).unwrap();
    let (lba, sectors) = (Lba(u64::from(read.lba) * 8), u32::from(read.blocks) * 8);
    assert_eq!(
        submit(Cmd::HpbRead { lba, sectors, entries: &[read.entry] }).stamps,
        [Stamp::whole(9, 0)]
    );
    assert_eq!(stack.ssd().hpb().unwrap().0.valid_entries, 1);
}
