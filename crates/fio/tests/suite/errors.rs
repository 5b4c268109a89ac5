//! Errors of job files, word for word, and the content of valid job files.

use flashatlas_fio::{Amount, Distribution, Engine, JobFile, Layout, Zone, parse};
use std::io;

/// Capacity of the drive, in bytes.
const CAPACITY: u64 = 1 << 20;

fn include(path: &str) -> io::Result<String> {
    match path {
        "size.inc" => Ok("size=64k\n".into()),
        "bad.inc" => Ok("\n  sise=64k\n".into()),
        "a.inc" => Ok("include b.inc\n".into()),
        "b.inc" => Ok("; comes back\ninclude a.inc\n".into()),
        deeper => match deeper.strip_prefix("deep") {
            Some(n) => Ok(format!("include deep{}\n", n.parse::<u32>().unwrap() + 1)),
            None => Err(io::Error::other("no such file")),
        },
    }
}

fn env(name: &str) -> Option<String> {
    (name == "KIB").then(|| "64".into())
}

fn file(text: &str) -> JobFile {
    parse(text, "t.fio", &env, &include).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn layout(text: &str) -> Layout {
    file(text).layout(CAPACITY).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Returns the error of a job file.
fn error(text: &str) -> String {
    match parse(text, "t.fio", &env, &include) {
        Ok(file) => file.layout(CAPACITY).map(|_| ()).expect_err(text).to_string(),
        Err(error) => error.to_string(),
    }
}

/// Returns the error of a job of 64 KiB with the option `line`.
fn option(line: &str) -> String {
    error(&format!("[job]\nsize=64k\n{line}\n"))
}

#[test]
fn sections_lines_and_names() {
    assert_eq!(
        error(""),
        "t.fio:1:1: the file has no job; write at least one section besides [global]"
    );
    assert_eq!(
        error("[global]\nsize=1m\n"),
        "t.fio:1:1: the file has no job; write at least one section besides [global]"
    );
    assert_eq!(error("size=1m\n[a]\n"), "t.fio:1:1: `size` stands before the first section");
    assert_eq!(error("[a\n"), "t.fio:1:1: `[a` is not a section; write [name]");
    assert_eq!(error("[]\n"), "t.fio:1:1: `[]` is not a section; write [name]");
    assert_eq!(
        option("  iodeph=4"),
        "t.fio:3:3: option `iodeph` is not known to fio; did you mean `iodepth`?"
    );
    assert_eq!(option("xxyyzzxxyyzz"), "t.fio:3:1: option `xxyyzzxxyyzz` is not known to fio");
    assert_eq!(
        option("randomdistribution=zipf"),
        "t.fio:3:1: option `randomdistribution` is not known to fio; did you mean \
         `random_distribution`?"
    );
    assert_eq!(
        error(&format!("[a]\ndescription={}\n", "x".repeat(9000))),
        "t.fio:2:1: the line is longer than fio's limit of 8192 bytes"
    );
}

#[test]
fn numbers_and_units() {
    assert_eq!(option("bs=0"), "t.fio:3:4: bs: 0 is too small; give at least 1");
    assert_eq!(
        option("bs = -4k"),
        "t.fio:3:6: bs: `-4k` is not a number; write a number such as 4096, 4k or 0x1000"
    );
    assert_eq!(
        option("bs=1.5k"),
        "t.fio:3:4: bs: `1.5k` is not a number; write a number such as 4096, 4k or 0x1000"
    );
    assert_eq!(option("bs="), "t.fio:3:4: bs: the option has no value; write a value after `=`");
    assert_eq!(option("bs"), "t.fio:3:1: bs: the option has no value; write a value after `=`");
    assert_eq!(
        option("bs=4k,4k,4k,4k"),
        "t.fio:3:4: bs: 4 values are given; give at most three: for reads, writes and trims"
    );
    assert_eq!(
        option("io_size=20000p"),
        "t.fio:3:9: io_size: `20000p` is too large; give at most 9223372036854775807"
    );
    assert_eq!(
        option("bsrange=4k"),
        "t.fio:3:9: bsrange: `4k` is not a range; write a range such as 4k-16k"
    );
    assert_eq!(
        option("runtime=1y"),
        "t.fio:3:9: runtime: `1y` is not a time; write a time such as 10, 10s, 500ms or 2m"
    );
    assert_eq!(
        option("runtime=201d"),
        "t.fio:3:9: runtime: `201d` is too long; give at most 200 days"
    );
    assert_eq!(
        option("time_based=yes"),
        "t.fio:3:12: time_based: `yes` is not a switch; give 0 or 1"
    );
    assert_eq!(option("kb_base=1023"), "t.fio:3:9: kb_base: 1023 is not a base; give 1000 or 1024");
}

#[test]
fn values_out_of_range() {
    assert_eq!(
        option("iodepth=0"),
        "t.fio:3:9: iodepth: 0 is out of range; give a number from 1 to 65536"
    );
    assert_eq!(
        option("numjobs=0"),
        "t.fio:3:9: numjobs: 0 is out of range; give a number from 1 to 65536"
    );
    assert_eq!(
        option("rwmixread=101"),
        "t.fio:3:11: rwmixread: 101 is out of range; give a number from 0 to 100"
    );
    assert_eq!(
        option("loops=0"),
        "t.fio:3:7: loops: 0 is out of range; give a number from 1 to 4294967295"
    );
    assert_eq!(
        option("rate=0"),
        "t.fio:3:6: rate: a rate of 0 would issue no request; leave the option out to set no limit"
    );
    assert_eq!(
        option("rate_iops=,0"),
        "t.fio:3:11: rate_iops: a rate of 0 would issue no request; leave the option out to set no \
         limit"
    );
    assert_eq!(
        option("rate_min=1m"),
        "t.fio:3:10: rate_min: a minimum rate would end the job early; only `rate` and `rate_iops` \
         are simulated"
    );
    assert_eq!(
        option("rate=1m\nrate_iops=5"),
        "t.fio:4:11: rate_iops: `rate` already limits reads; give one of the two options"
    );
    assert_eq!(
        option("time_based"),
        "t.fio:3:1: time_based: the job would never end; give a runtime"
    );
    assert_eq!(
        option("rw=randred"),
        "t.fio:3:4: rw: pattern `randred` is not simulated; did you mean `randread`? (allowed: \
         read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite, \
         randtrimwrite)"
    );
    assert_eq!(
        option("ioengine=rbd"),
        "t.fio:3:10: ioengine: engine `rbd` is not simulated (allowed: sync, psync, vsync, pvsync, \
         pvsync2, mmap, sg, libaio, io_uring, io_uring_cmd, posixaio, null)"
    );
}

#[test]
fn shares_that_cannot_be() {
    assert_eq!(
        option("bssplit=4k/60:8k/50"),
        "t.fio:3:9: bssplit: the sizes get 110 percent of the requests; they must get 100 percent"
    );
    let law = |text: &str| option(&format!("random_distribution={text}"));
    assert_eq!(
        law("zoned:60/10:30/20"),
        "t.fio:3:21: random_distribution: the zones get 90 percent of the requests; they must get \
         100 percent"
    );
    assert_eq!(
        law("zoned:60/60:40/60"),
        "t.fio:3:21: random_distribution: the zones take 120 percent of the file; they can take at \
         most 100 percent"
    );
    assert_eq!(
        law("zoned_abs:60/60k:40/60k"),
        "t.fio:3:21: random_distribution: zones of 122880 bytes do not fit into the 65536 bytes in \
         use"
    );
    assert_eq!(
        law("zipf:1"),
        "t.fio:3:21: random_distribution: `zipf:1` is not defined by fio; give a number above 0 \
         other than 1"
    );
    assert_eq!(
        law("pareto:1"),
        "t.fio:3:21: random_distribution: `pareto:1` is out of range; give a number between 0 and 1"
    );
    assert_eq!(
        law("normal:101"),
        "t.fio:3:21: random_distribution: `normal:101` is out of range; give a number from 0 to 100"
    );
    assert_eq!(
        law("zipf:nan"),
        "t.fio:3:21: random_distribution: `nan` is not a number; write a number such as 1.2"
    );
    assert_eq!(
        law("zipf:1.2:2"),
        "t.fio:3:21: random_distribution: centre 2 is out of range; give a number from 0 to 1"
    );
    assert_eq!(
        law("gauss"),
        "t.fio:3:21: random_distribution: distribution `gauss` is not known (allowed: random, \
         zipf, pareto, normal, zoned, zoned_abs)"
    );
}

#[test]
fn jobs_that_do_not_fit() {
    assert_eq!(error("[a]\nsize=0\n"), "t.fio:2:6: size: 0 is too small; give at least 1");
    assert_eq!(
        error("[a]\nsize=0%\n"),
        "t.fio:2:6: size: 0 is out of range; give a number from 1 to 100"
    );
    assert_eq!(
        error("[a]\nsize=2m\n"),
        "t.fio:2:6: size: the job would end at byte 2097152 of `a.0.0`, but the drive has 1048576 \
         bytes"
    );
    assert_eq!(
        error("[a]\nfilename=/dev/sdb\noffset=1m\n"),
        "t.fio:3:8: offset: the job would begin at byte 1048576 of `/dev/sdb`, which has 1048576 \
         bytes"
    );
    assert_eq!(
        error("[a]\nfilename=/dev/sdb\noffset=512k\nsize=768k\n"),
        "t.fio:3:8: offset: the job would end at byte 1310720 of `/dev/sdb`, but the drive has \
         1048576 bytes"
    );
    assert_eq!(
        error("[a]\nsize=768k\n[b]\nsize=512k\n"),
        "t.fio:4:6: size: the files of all jobs take 1310720 bytes, but the drive has 1048576 bytes"
    );
    assert_eq!(
        option("bs=128k"),
        "t.fio:3:4: bs: blocks of 131072 bytes do not fit into the 65536 bytes in use"
    );
    assert_eq!(
        error("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n"),
        "t.fio:4:10: filename: `/dev/sdb` is a second drive beside `/dev/sda`, but only one drive \
         is simulated"
    );
    assert_eq!(
        error("[a]\nfilename=x\nsize=50%\n"),
        "t.fio:3:6: size: a file needs a size in bytes, or the option `filesize`"
    );
    assert_eq!(
        option("numjobs=5000"),
        "t.fio:3:9: numjobs: the file has more than 4096 jobs in all"
    );
    let huge =
        parse("[a]\nrw=randread\n", "t.fio", &env, &include).unwrap().layout(1 << 50).unwrap_err();
    assert_eq!(
        huge.to_string(),
        "t.fio:2:4: rw: the random map would have more than 4294967296 blocks; use norandommap, or \
         larger blocks"
    );
}

#[test]
fn includes_and_variables() {
    assert_eq!(layout("[a]\ninclude size.inc\n").jobs[0].size, 65536);
    assert_eq!(layout("[a]\nsize=${KIB}k\n").jobs[0].size, 65536);
    assert_eq!(layout("[a]\nsize=64k\nbs=$pagesize\n").jobs[0].options.sizes[0], (4096, 4096));
    assert_eq!(
        error("[a]\ninclude bad.inc\n"),
        "bad.inc:2:3: option `sise` is not known to fio; did you mean `size`?"
    );
    assert_eq!(
        error("[a]\n include none.inc\n"),
        "t.fio:2:2: cannot include `none.inc`: no such file"
    );
    assert_eq!(
        error("include a.inc\n"),
        "b.inc:2:1: files include each other: a.inc -> b.inc -> a.inc"
    );
    assert_eq!(
        error("include deep0\n"),
        "deep14:1:1: too many files are included; at most 16 files can include each other, and 256 \
         files in all"
    );
    assert_eq!(error("[a]\nsize=1${NONE}k\n"), "t.fio:2:7: environment variable `NONE` is not set");
    assert_eq!(error("[a]\nsize=${KIB\n"), "t.fio:2:6: `${` has no `}` after it");
    assert_eq!(
        error("[a]\nnumjobs=$ncpus\n"),
        "t.fio:2:9: `$ncpus` depends on the machine; write a number instead"
    );
    assert_eq!(
        error("[a]\nsize=$x\n"),
        "t.fio:2:6: `$` stands alone; write ${VARIABLE} or $pagesize"
    );
}

#[test]
fn warnings_name_each_option_once() {
    let file = file(
        "[a]\ndirect=1\nsize=64k\nthread\nhipri\n[b]\ndirect=1\nsize=64k\n\
         threads=1\nthread=1\n[c]\n\
         size=64k\n",
    );
    let warnings: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "t.fio:4:1: thread: this option has no influence on the requests: processors, memory \
             and processes of the host are not simulated",
            "t.fio:5:1: hipri: this option has no influence on the requests: the host submits and \
             reaps in no time",
            "t.fio:9:1: threads: this option has no influence on the requests: it belongs to an \
             option that has an error of its own (zonemode=zbd, latency_target, rate_min, profile)",
            "t.fio:11:1: direct: 0 is fio's default, but the page cache is not simulated: requests \
             go to the drive as with direct=1",
        ]
    );
    let layout = layout("[a]\ndirect=1\nsize=64k\n[b]\ndirect=1\nfilename=/dev/sda\n");
    let warnings: Vec<String> = layout.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["t.fio:6:10: filename: `/dev/sda` is the whole drive, which also holds the files of [a]"]
    );
}

#[test]
fn globals_hold_for_what_follows() {
    let text = "# a comment\n[global]\nsize=64k ; and another\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n\
                size=32k\n[c]\n";
    let jobs = layout(text).jobs;
    let seen: Vec<(&str, u64, u64)> =
        jobs.iter().map(|j| (&*j.name, j.size, j.options.sizes[0].0)).collect();
    assert_eq!(seen, [("a", 65536, 8192), ("b", 32768, 16384), ("c", 65536, 16384)]);
}

#[test]
fn files_lie_side_by_side_in_order_of_appearance() {
    let text = "[a]\nsize=10k\nbs=1k\n[b]\nsize=64k\nnrfiles=2\nnumjobs=2\n[c]\nsize=18k\nbs=1k\n\
                filename=a.0.0\n";
    let layout = layout(text);
    let spans: Vec<(&str, u64, u64, u64)> = layout
        .jobs
        .iter()
        .flat_map(|j| j.files.iter().map(|f| (&*f.name, f.start, f.length, f.file_bytes)))
        .collect();
    // [c] makes the first file 18 KiB long; the next file begins at a multiple of 4 KiB
    assert_eq!(
        spans,
        [
            ("a.0.0", 0, 10240, 18432),
            ("b.0.0", 20480, 32768, 32768),
            ("b.0.1", 53248, 32768, 32768),
            ("b.1.0", 86016, 32768, 32768),
            ("b.1.1", 118784, 32768, 32768),
            ("a.0.0", 0, 18432, 18432),
        ]
    );
    assert_eq!(layout.bytes, 118784 + 32768);
}

#[test]
fn shares_of_the_drive_and_increments() {
    let jobs =
        layout("[a]\nfilename=/dev/sda\nsize=25%\noffset=10%\noffset_increment=25%\nnumjobs=3\n")
            .jobs;
    let spans: Vec<(u64, u64)> =
        jobs.iter().map(|j| (j.files[0].offset, j.files[0].length)).collect();
    // 10 % of 1 MiB are 104857 bytes, or 106496 bytes when rounded up to a multiple of 4 KiB; 25 %
    // are 256 KiB
    assert_eq!(spans, [(106_496, 262_144), (368_640, 262_144), (630_784, 262_144)]);
    let job = &layout("[a]\nrw=randread\n").jobs[0];
    assert!(job.files[0].is_drive, "a job without a size uses the whole drive");
    assert_eq!((job.size, job.files[0].length), (CAPACITY, CAPACITY));
}

#[test]
fn groups_begin_at_walls() {
    let jobs = layout(
        "[global]\nsize=4k\n[a]\nstonewall\nnumjobs=2\n[b]\n[c]\nwait_for_previous\n[d]\n\
         new_group\n",
    )
    .jobs;
    let seen: Vec<(u32, bool)> = jobs.iter().map(|j| (j.group, j.stonewall)).collect();
    assert_eq!(seen, [(0, true), (0, false), (0, false), (1, true), (2, false)]);
}

#[test]
fn options_are_read_as_fio_reads_them() {
    let one = |line: &str| file(&format!("[a]\nsize=64k\n{line}\n")).sections[0].options.clone();
    assert_eq!(one("kb_base=1000\nbs=4k").sizes[0], (4000, 4000));
    assert_eq!(
        one("bs=4k\nkb_base=1000").sizes[0],
        (4000, 4000),
        "kb_base applies wherever it is written"
    );
    assert_eq!(one("bs=4k,,8k").sizes, [(4096, 4096), (4096, 4096), (8192, 8192)]);
    assert_eq!(one("bsrange=4k-16k,1k:2k").sizes, [(4096, 16384), (1024, 2048), (1024, 2048)]);
    assert_eq!(one("size=10%").size, Some(Amount::Percent(10)));
    assert_eq!(one("rwmixwrite=30").read_percent, 70);
    assert_eq!(one("iodepth=8\nioengine=libaio").effective_depth(), 8);
    assert_eq!(one("iodepth=8\nioengine=mmap").effective_depth(), 1);
    assert_eq!((one("").engine, one("ioengine=io_uring").engine), (Engine::Sync, Engine::IoUring));
    assert_eq!(one("rate_iops=100\nbs=8k").bytes_per_second(0), 819_200);
    assert_eq!(one("filename=a\\:b:c").filenames, ["a:b", "c"]);
    assert!(one("sync=dsync").durable && one("sync=1").durable && !one("sync=none").durable);
    assert_eq!(one("rw=read:4k").hole, 4096);
    assert_eq!(one("rw=randread:4").random_every, 4);
    let shares: Vec<(u64, u32)> =
        one("bssplit=4k/10:8k:16k/30").split[0].iter().map(|s| (s.bytes, s.percent)).collect();
    assert_eq!(shares, [(8192, 60), (16384, 30), (4096, 10)]);
    assert_eq!(
        one("random_distribution=zipf").distribution,
        Distribution::Zipf { theta: 1.1, centre: None }
    );
    let Distribution::Zoned { absolute, zones } =
        one("random_distribution=zoned:70/10:30").distribution.clone()
    else {
        panic!()
    };
    assert_eq!(
        (absolute, zones[1].clone()),
        (false, vec![Zone { access: 70, size: 10 }, Zone { access: 30, size: 90 }])
    );
}

#[test]
fn when_a_job_settles() {
    let said = |line: &str| option(line);
    assert_eq!(
        said("steadystate=iops"),
        "t.fio:3:13: steadystate: `iops` has no limit; write a limit such as iops:0.3%"
    );
    assert_eq!(
        said("ss=iop:3%"),
        "t.fio:3:4: ss: criterion `iop` is not simulated; did you mean `iops`? (allowed: iops, \
         iops_slope, bw, bw_slope, lat, lat_slope)"
    );
    for bad in ["iops:x%", "iops:-3", "iops:0", "iops:nan", "iops:"] {
        let limit = bad.split_once(':').unwrap().1.trim_end_matches('%');
        assert_eq!(
            said(&format!("ss={bad}")),
            format!("t.fio:3:4: ss: `{limit}` is not a limit; give a number above 0, such as 0.3%")
        );
    }
    assert!(said("ss=lat:3x").contains("`3x` is not a time"));
    assert!(said("ss=bw:3x").contains("`3x` is not a number"));
    assert_eq!(
        said("ss=iops:1%\nss_dur=1500ms"),
        "t.fio:4:8: steadystate_duration: 1500000 us hold 1 measurements of 1000000 us, but \
         at least two are needed (see steadystate_check_interval)"
    );
    assert_eq!(
        said("ss_interval=0"),
        "t.fio:3:13: steadystate_check_interval: an interval of no time cannot measure anything"
    );
    assert!(said("ss_dur=100s\nss_interval=1ms").contains("the window holds 100000 measurements"));
    assert_eq!(
        error("[a]\nsize=64k\nss_dur=5\n[b]\nsize=64k\nss_dur=6\nss=iops:1%\n"),
        "t.fio:7:4: steadystate: the jobs of a group settle together, but the \
         job `a` has other options of `steadystate`; write the same options for each job (in \
         [global]), or use `new_group`"
    );
    let warnings = |text: &str| file(text).warnings.len();
    assert_eq!(
        warnings("[a]\nsize=64k\ndirect=1\nss=iops:1%\n"),
        1,
        "without ss_dur, no window is judged"
    );
    assert_eq!(warnings("[a]\nsize=64k\ndirect=1\nss=iops:1%\nss_dur=5\n"), 0);
}

#[test]
fn limits_of_settling_have_their_units() {
    let limit = |text: &str| {
        let file = file(&format!("[a]\nsize=64k\nss={text}\n"));
        let c = file.sections[0].options.settling.criterion;
        (c.limit, c.percent, c.slope)
    };
    assert_eq!(limit("iops:2"), (2.0, false, false));
    assert_eq!(limit("iops_slope:0.3%"), (0.3, true, true));
    assert_eq!(limit("bw:2k"), (2048.0, false, false));
    assert_eq!(limit("lat:500"), (500.0, false, false), "in nanoseconds, as in fio");
    assert_eq!(limit("lat_slope:2ms"), (2e6, false, true));
}
