//! Traces that are written and read back, and records that a format cannot hold.

use crate::common::*;
use flashatlas_types::HostOp::{Flush, Read, Trim, Write};
use flashatlas_types::{HostOp, Lba, Ps, Request, Rng, Seed};
use flashatlas_workload::{
    FORMATS, MAX_TRANSFER_SECTORS, Origin, ReadOptions, Record, WriteError, WriteOptions, Written,
    create,
};

/// Bounds of random records.
struct Kinds {
    ops: &'static [HostOp],
    fua: &'static [HostOp],
    devices: u64,
    tick: u64,
}

const READS_AND_WRITES: &[HostOp] = &[Read, Write];
const NO_FLUSH: &[HostOp] = &[Read, Write, Trim];

/// Returns the bounds of the records that `format` can hold.
fn holds(format: &str) -> Kinds {
    let (ops, fua, devices, tick): (&[HostOp], &[HostOp], u64, u64) = match format {
        "atlas" | "csv" => (&HostOp::ALL, &HostOp::ALL, 5, 1),
        "blkreplay" => (&HostOp::ALL, NO_FLUSH, 1, NS),
        "iolog" => (&HostOp::ALL, &[], 5, US),
        "mqsim" => (READS_AND_WRITES, &[], 5, NS),
        "msr" => (READS_AND_WRITES, &[], 5, 100 * NS),
        "spc" => (READS_AND_WRITES, &[], 5, 1),
        other => panic!("what does {other} hold?"),
    };
    Kinds { ops, fua, devices, tick }
}

/// Returns random records within `kinds`, the longest and the farthest among them. Devices are
/// numbered as they appear, because readers number them so.
fn random(kinds: &Kinds, count: usize, rng: &mut Rng) -> Vec<Record> {
    let (mut at, mut seen) = (0, 0);
    let mut records = Vec::new();
    for i in 0..count {
        let op = kinds.ops[rng.below(kinds.ops.len() as u64) as usize];
        let device = rng.below(kinds.devices.min(seen + 1)).min(kinds.devices - 1);
        seen = seen.max(device + 1);
        let sectors = match (op, rng.below(10)) {
            (Flush, _) => 0,
            (Trim, 0) => u32::MAX,
            (_, 0) => MAX_TRANSFER_SECTORS,
            _ => 1 + rng.below(64) as u32,
        };
        let room = (1 << 55) - u64::from(sectors);
        let lba = match rng.below(4) {
            _ if op == Flush => 0,
            0 => room - rng.below(3),
            _ => rng.below(1 << 30),
        };
        let request = Request {
            at: Ps(at),
            op,
            lba: Lba(lba),
            sectors,
            fua: kinds.fua.contains(&op) && rng.below(4) == 0,
        };
        records.push(Record { request, device: device as u32 });
        // times mostly go forward, and sometimes back
        let step = rng.below([3, 1000, 5_000_000][i % 3]) * kinds.tick;
        at = if rng.below(8) == 0 { at.saturating_sub(step) } else { at + step };
    }
    records
}

fn with(mut record: Record, change: impl FnOnce(&mut Record)) -> Record {
    change(&mut record);
    record
}

#[test]
fn every_written_format_gives_back_what_it_holds() {
    let mut rng = Rng::stream(Seed(11), "writing");
    let mut formats: Vec<&str> =
        FORMATS.iter().filter(|f| f.writer.is_some()).map(|f| f.name).collect();
    assert_eq!(formats, ["atlas", "blkreplay", "csv", "iolog", "mqsim", "msr", "spc"]);
    formats.push("atlas:zstd=0");
    for spec in formats {
        let name = spec.split(':').next().unwrap();
        for round in 0..20 {
            let records = random(&holds(name), 1 + 50 * round, &mut rng);
            let compression = COMPRESSIONS[round % COMPRESSIONS.len()];
            let (bytes, written) = write(spec, &records, compression, false).unwrap();
            let expected = Written {
                records: records.len() as u64,
                bytes: written.bytes,
                ..Written::default()
            };
            assert_eq!(written, expected, "{spec}");
            let got = read_with(&bytes, Some(name), &ReadOptions::default()).unwrap();
            assert!(got == records, "{spec}, {compression}, round {round}");
            if name != "mqsim" {
                assert_eq!(read(&bytes).as_ref(), Ok(&records), "{spec} is recognised");
            }
        }
    }
}

#[test]
fn text_as_other_tools_want_it() {
    let records = [
        record(0, Write, 8, 16, 0),
        record(1_500_000 * NS, Read, 24, 1, 1),
        record(2 * S, Write, 0, 8, 0),
    ];
    let text =
        |format| String::from_utf8(write(format, &records, "none", false).unwrap().0).unwrap();
    assert_eq!(text("spc"), "0,8,8192,w,0\n1,24,512,r,0.0015\n0,0,4096,w,2\n");
    assert_eq!(
        text("msr"),
        "0,host,0,Write,4096,8192,0\n15000,host,1,Read,12288,512,0\n\
         20000000,host,0,Write,0,4096,0\n"
    );
    assert_eq!(text("mqsim"), "0 0 8 16 0\n1500000 1 24 1 1\n2000000000 0 0 8 0\n");
    assert_eq!(
        text("iolog"),
        "fio version 3 iolog\n0 device0 add\n0 device0 open\n0 device0 write 4096 8192\n1500 \
         device1 add\n1500 device1 open\n1500 device1 read 12288 512\n2000000 device0 write 0 \
         4096\n"
    );
    assert_eq!(
        text("csv"),
        "time_ps,op,sector,sectors,fua,device\n0,write,8,16,0,0\n1500000000,read,24,1,0,1\n\
         2000000000000,write,0,8,0,0\n"
    );
    let one = [
        records[0],
        with(record(5 * NS, Write, 24, 1, 0), |r| r.request.fua = true),
        record(S, Flush, 0, 0, 0),
    ];
    assert_eq!(
        String::from_utf8(write("blkreplay", &one, "none", false).unwrap().0).unwrap(),
        "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n0 ; 8 ; 16 ; W ; 0.0 ; \
         0.0\n0.000000005 ; 24 ; 1 ; WF ; 0.0 ; 0.0\n1 ; 0 ; 0 ; F ; 0.0 ; 0.0\n"
    );
}

/// Returns the error about the second of two records.
fn refusal(format: &str, second: Record) -> String {
    let records = [record(0, Write, 0, 8, 0), second];
    write(format, &records, "none", false).unwrap_err().to_string()
}

#[test]
fn what_a_format_cannot_hold_is_refused_with_its_record() {
    const ADVICE: &str = "write a format that holds them, such as atlas or csv, or allow losses \
                          (`lossy`)";
    let trim = record(0, Trim, 0, 8, 0);
    let flush = record(0, Flush, 0, 0, 0);
    let fua = |r: Record| with(r, |r| r.request.fua = true);
    for format in ["spc", "msr", "mqsim"] {
        assert_eq!(
            refusal(format, trim),
            format!("record 2: {format} cannot hold trims; {ADVICE}")
        );
        assert_eq!(
            refusal(format, flush),
            format!("record 2: {format} cannot hold flushes; {ADVICE}")
        );
    }
    for format in ["spc", "msr", "mqsim", "iolog"] {
        let why = refusal(format, fua(record(0, Write, 0, 8, 0)));
        assert_eq!(
            why,
            format!("record 2: {format} cannot hold the forced unit access of a write; {ADVICE}")
        );
    }
    assert_eq!(
        refusal("blkreplay", fua(flush)),
        format!("record 2: blkreplay cannot hold the forced unit access of a flush; {ADVICE}")
    );
    for (format, at, unit) in [
        ("mqsim", 1_999, "1ns"),
        ("blkreplay", 1, "1ns"),
        ("msr", NS, "100ns"),
        ("iolog", NS, "1us"),
    ] {
        assert_eq!(
            refusal(format, record(at, Read, 0, 8, 0)),
            format!(
                "record 2: the time {at} ps is not a multiple of {unit}, the unit of {format}; \
                 {ADVICE}"
            )
        );
    }
    assert_eq!(
        refusal("blkreplay", record(0, Read, 0, 8, 1)),
        "record 2: the format blkreplay holds one device, but the record is of a second device; \
         select a device (select:N) or merge all devices (collapse) when reading, write a format \
         that holds several devices, such as atlas or csv, or allow losses (`lossy`)"
    );
}

#[test]
fn losses_are_counted_when_they_are_allowed() {
    let fua = with(record(1_999, Write, 8, 8, 0), |r| r.request.fua = true);
    let records = [
        record(0, Write, 0, 8, 0),
        record(0, Trim, 0, 8, 0),
        record(0, Flush, 0, 0, 0),
        fua,
        record(3 * NS, Read, 0, 8, 1),
    ];
    let (bytes, written) = write("mqsim", &records, "none", true).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "0 0 0 8 0\n1 0 8 8 0\n3 1 0 8 1\n");
    let expected = Written {
        records: 3,
        bytes: 30,
        trims_dropped: 1,
        flushes_dropped: 1,
        fua_dropped: 1,
        times_rounded: 1,
        devices_dropped: 0,
    };
    assert_eq!(written, expected);
    let (bytes, written) = write("blkreplay", &records, "none", true).unwrap();
    assert!(
        String::from_utf8(bytes).unwrap().contains("\n0.000000001 ; 8 ; 8 ; WF ;"),
        "1,999 ps are rounded down"
    );
    assert_eq!((written.records, written.devices_dropped, written.times_rounded), (4, 1, 1));
    let error = write("spc", &records[1..3], "none", true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 2: every request was left out; a trace needs at least one"
    );
}

#[test]
fn no_sink_takes_what_no_source_yields() {
    let advice = "a record needs at least one sector (a flush none), at most 1 GiB, an end below \
                  2^64 bytes, and one of 65,536 devices";
    for (bad, why) in [
        (record(0, Read, 0, 0, 0), "a length of zero"),
        (record(0, Read, 0, MAX_TRANSFER_SECTORS + 1, 0), "more than 1 GiB"),
        (record(0, Trim, 1 << 55, 1, 0), "an address beyond all drives"),
        (record(0, Read, u64::MAX, 1, 0), "an address beyond all drives"),
        (record(0, Flush, 8, 0, 0), "a flush with an address or a length"),
        (record(0, Read, 8, 1, 65_536), "one device too many"),
    ] {
        for format in FORMATS.iter().filter(|f| f.writer.is_some()) {
            let error = refusal(format.name, bad);
            assert_eq!(error, format!("record 2: {why}; {advice}"), "{}", format.name);
        }
    }
    let error = write("csv", &[], "none", false).unwrap_err().to_string();
    assert_eq!(error, "record 0: the trace holds no request; a trace needs at least one");
}

#[test]
fn unknown_targets() {
    let error = |format: &str, compression: &str| {
        let sink = create(format, Box::new(std::io::sink()), compression, &WriteOptions::default());
        sink.err().map(|e| e.to_string())
    };
    assert_eq!(
        error("vscsi", "none").as_deref(),
        Some(
            "to_format: the format vscsi can be read but not written (allowed: atlas, blkreplay, \
             csv, iolog, mqsim, msr, spc)"
        )
    );
    assert_eq!(
        error("csv", "zip").as_deref(),
        Some(
            "trace.compression: compression `zip` is not known; did you mean `zst`? (allowed: \
             none, gz, bz2, xz, zst)"
        )
    );
    assert_eq!(
        error("csv:zstd=3", "none").as_deref(),
        Some("csv: zstd=3: `csv` takes no parameters")
    );
    assert_eq!(
        error("atlas:zstd=20", "none").as_deref(),
        Some("atlas: zstd: 20 is out of range (allowed: 0 to 19)")
    );
    assert!(error("mrs", "none").is_some_and(|e| e.contains("did you mean `msr`?")));
}

/// Output that fails after a number of bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(std::io::Error::other("the disk is full"));
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_the_output_says_is_passed_on() {
    for format in FORMATS.iter().filter(|f| f.writer.is_some()) {
        for compression in COMPRESSIONS {
            let mut sink =
                create(format.name, Box::new(Full(10)), compression, &WriteOptions::default())
                    .unwrap();
            sink.describe(&Origin::default());
            let put = (0..3).try_for_each(|n| sink.put(&record(0, Write, n * 8, 8, 0)));
            let ended = put.and_then(|()| sink.finish().map(drop));
            let Err(WriteError::Io(error)) = ended else {
                panic!("{}, {compression}: no error", format.name)
            };
            assert!(
                error.to_string().contains("the disk is full"),
                "{}, {compression}: {error}",
                format.name
            );
        }
    }
}
