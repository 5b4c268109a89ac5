//! Bringing a drive into a state, in no simulated time.

use crate::fit::Mapper;
use crate::input::Input;
use crate::oracle::Oracle;
use crate::{Precondition, RunError};
use flashatlas_device::{Cmd, Device, Reply, Ssd};
use flashatlas_types::{HostOp, Ps, Tag};

/// Write ids of preconditioning lie above those of the run.
const CONTENT: u64 = 1 << 62;

/// Carry out `precondition`; `input` is the trace that it names. Counters are zero afterwards.
pub(crate) fn precondition(
    drive: &mut Ssd,
    oracle: &mut Oracle,
    precondition: &Precondition,
    input: Option<Input>,
    mapper: &mut Mapper,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<(), RunError> {
    match precondition {
        Precondition::None => {}
        Precondition::Fill => {
            drive.fill(|lpn| Oracle::filled(lpn.0)).map_err(|e| failed(0, e))?;
            oracle.fill();
        }
        Precondition::Trace(_) => {
            let mut input = input.expect("opened by the caller");
            let mut reply = Reply::default();
            let mut number = 0;
            drive.set_instant(true);
            while let Some(record) = input.next_record()? {
                number += 1;
                let Some(r) = mapper.map(&record, number)? else { continue };
                let content = CONTENT + number;
                let cmd = match r.op {
                    HostOp::Write => Cmd::Write { lba: r.lba, sectors: r.sectors, fua: false, content, data: None },
                    HostOp::Trim => Cmd::Trim { lba: r.lba, sectors: r.sectors },
                    HostOp::Read | HostOp::Flush => continue,
                };
                drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply).map_err(|e| failed(number, e))?;
                oracle.apply(&r, content);
                if number % 4096 == 0 && !go_on(number) {
                    return Err(RunError::Interrupted);
                }
            }
            drive.drain().map_err(|e| failed(number, e))?;
            drive.set_instant(false);
        }
    }
    drive.reset_counters();
    Ok(())
}

pub(crate) fn failed(request: u64, error: flashatlas_device::SubmitError) -> RunError {
    match error {
        flashatlas_device::SubmitError::Ftl(error) => RunError::Drive { request, error },
        refused => RunError::Refused { request, why: refused.to_string() },
    }
}
