//! Job files. Every included file is a job file, every log has two requests, and every variable has
//! the value 4096. The length of the text determines the size of the drive.
#![no_main]

use flashatlas_fio::{JobStep, JobStream, parse};
use flashatlas_types::Seed;

/// Maximum number of steps of each job that are checked.
const STEPS: u32 = 300;
/// Maximum number of jobs that are checked, because a line can ask for thousands of jobs.
const JOBS: usize = 8;

/// Text of every log.
const LOG: &str = "fio version 3 iolog\n1 f add\n5 f open\n9 f read 4096 8192\n20 g write 0 4096\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let include = |path: &str| {
        Ok(if path.ends_with(".log") { LOG } else { "[included]\nsize=64k\n" }.to_owned())
    };
    let Ok(file) = parse(text, "job.fio", &|_| Some("4096".to_owned()), &include) else { return };
    let capacity = [1 << 16, 1 << 24, 1 << 36, u64::MAX][text.len() % 4];
    let Ok(layout) = file.layout(capacity) else { return };
    if layout.jobs.iter().flat_map(|job| &job.files).any(|f| f.length > 1 << 30) {
        return; // random maps of this size are slow to set up, and behave like small maps
    }
    for job in layout.jobs.iter().take(JOBS) {
        let mut stream = JobStream::new(job, Seed(1));
        for _ in 0..STEPS {
            stream.wish();
            let Some(step) = stream.next_step() else { break };
            if let JobStep::Request(request) | JobStep::Check(request) = step {
                stream.complete(request.direction, request.file, request.offset);
                let file = &job.files[request.file as usize];
                let end =
                    request.offset.checked_add(request.bytes).expect("the end has an address");
                assert!(
                    request.bytes > 0 && end <= file.file_bytes && file.start + end <= capacity,
                    "{request:?}"
                );
            }
        }
    }
});
