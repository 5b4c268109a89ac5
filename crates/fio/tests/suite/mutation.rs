//! Damaged job files: a file is refused with a place, or its jobs stay inside their files.

use flashatlas_fio::{JobStep, JobStream, parse};
use flashatlas_fixtures::damage::{corpus, damage};
use flashatlas_types::{Rng, Seed};

/// Number of damaged copies of each file of the corpus.
const COPIES: u32 = 4000;
/// Number of steps of each job that are checked.
const STEPS: u32 = 100;
/// Number of jobs of each file that are checked.
const JOBS: usize = 8;
/// Pieces of text with a meaning in job files, which damage may insert.
const PIECES: &[&str] = &[
    "\n",
    "=",
    ":",
    "/",
    "%",
    ",",
    "0",
    "9",
    "-1",
    "18446744073709551615",
    "[",
    "]",
    "${X}",
    "size=",
    "bs=",
    "512",
    "1p",
    "k",
    "0x",
    "\u{e9}",
    "rw=randtrim\n",
    "numjobs=9\n",
    "loops=0\n",
    "offset=",
    "include x\n",
    "[global]\n",
    "time_based\n",
    "nrfiles=7\n",
    "randread:2",
    "zipf:0.5",
    "io_size=",
    "bssplit=",
    "verify=md5\n",
    "100",
    "kb_base=1000\n",
    "read_iolog=x.log\n",
    "verify_backlog=2\n",
    "zonesize=8k\nzonemode=strided\n",
];

/// Text of every log.
const LOG: &str = "fio version 3 iolog\n1 f add\n5 f open\n9 f read 4096 8192\n20 g write 0 4096\n";

/// Returns `true` if the file was accepted.
fn survive(text: &str, capacity: u64) -> bool {
    let include = |path: &str| {
        Ok(if path.ends_with(".log") { LOG } else { "[included]\nsize=8k\n" }.to_owned())
    };
    let layout = match parse(text, "job.fio", &|_| Some("4096".to_owned()), &include)
        .and_then(|f| f.layout(capacity))
    {
        Ok(layout) => layout,
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.starts_with("job.fio:")
                    || said.starts_with("x")
                    || said.starts_with("sizes.fio:")
                    || said.contains(".log:")
                    || said.contains("not an iolog header"),
                "{said}"
            );
            assert!(!said.contains('\n') && error.at.line > 0 && error.at.column > 0, "{said}");
            return false;
        }
    };
    assert!(layout.bytes <= capacity);
    for job in layout.jobs.iter().take(JOBS) {
        let mut stream = JobStream::new(job, Seed(1));
        for _ in 0..STEPS {
            stream.wish();
            let Some(step) = stream.next_step() else { break };
            if let JobStep::Request(r) | JobStep::Check(r) = step {
                stream.complete(r.direction, r.file, r.offset);
                let file = &job.files[r.file as usize];
                let end = r.offset.checked_add(r.bytes).unwrap();
                assert!(
                    r.bytes > 0 && end <= file.file_bytes && file.start + end <= capacity,
                    "{r:?} {file:?}\n{text}"
                );
            }
        }
    }
    true
}

#[test]
fn damaged_job_files_are_refused_or_stay_in_their_files() {
    let mut rng = Rng::stream(Seed(0x0f10), "mutation");
    let (mut accepted, mut refused) = (0, 0);
    for original in corpus("fio_job", 4) {
        assert!(survive(&original, 1 << 22), "the corpus itself is accepted: {original}");
        for _ in 0..COPIES {
            let mut text = original.clone();
            damage(&mut text, PIECES, &mut rng);
            let capacity = [1 << 18, 1 << 22, 1 << 22, 1 << 25, 1 << 25][rng.below(5) as usize];
            if survive(&text, capacity) { accepted += 1 } else { refused += 1 }
        }
    }
    // some damaged files must be accepted, and some must be refused
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
}
