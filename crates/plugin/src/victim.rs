//! Victim policies of plug-ins.

use crate::abi::{FA_FAULT, FA_NO_BLOCK, FaCandidates, FaMoment, FaVictim};
use crate::common::{Common, PluginError, required};
use crate::{common, params, watch};
use flashatlas_ftl::victims::{Candidates, LaneShape, Moment, VictimDef, VictimPolicy};
use flashatlas_types::{LocalBlock, Params, PartFault, Rng};
use std::ffi::c_void;

/// A policy for one lane.
struct Victim {
    who: &'static str,
    ops: FaVictim,
    policy: *mut c_void,
}

// SAFETY: only one thread at a time calls a plug-in for an object that the plug-in made, and the
// header forbids static variables
unsafe impl Send for Victim {}

/// Returns the definition of a policy with these callbacks.
pub fn definition(common: Common, ops: FaVictim) -> Result<VictimDef, PluginError> {
    let who = common.who;
    required(
        who,
        &[
            ("create", ops.create.is_some()),
            ("destroy", ops.destroy.is_some()),
            ("closed", ops.closed.is_some()),
            ("removed", ops.removed.is_some()),
            ("pick", ops.pick.is_some()),
        ],
    )?;
    let declared = common.params;
    let build = move |params: &Params, lane: LaneShape, mut rng: Rng| {
        let values = params::values(params, declared);
        let (create, seed) = (ops.create.expect("checked"), rng.below(u64::MAX));
        let _call = watch::enter(who, "create", 0);
        // SAFETY: as the header says; the values outlive the call
        let policy = unsafe { create(values.as_ptr(), lane.blocks, lane.slots, seed) };
        if policy.is_null() {
            PartFault::raise(who, "`create` returned null");
        }
        Box::new(Victim { who, ops, policy }) as Box<dyn VictimPolicy>
    };
    Ok(VictimDef {
        name: common.name,
        summary: common.summary,
        paper: common.paper,
        params: declared,
        build: Box::leak(Box::new(build)),
        steady: None,
    })
}

fn moment(at: Moment) -> FaMoment {
    FaMoment { clock: at.clock, now_ps: at.now.0 }
}

impl VictimPolicy for Victim {
    fn closed(&mut self, block: LocalBlock, valid: u32, at: Moment) {
        let _call = watch::enter(self.who, "closed", at.now.0);
        // SAFETY: `create` made the policy, and `destroy` has not freed it
        unsafe {
            self.ops.closed.expect("checked")(self.policy, block.number(), valid, moment(at))
        };
    }

    fn invalidated(&mut self, block: LocalBlock, valid: u32, at: Moment) {
        if let Some(invalidated) = self.ops.invalidated {
            let _call = watch::enter(self.who, "invalidated", at.now.0);
            // SAFETY: as in `closed`
            unsafe { invalidated(self.policy, block.number(), valid, moment(at)) };
        }
    }

    fn removed(&mut self, block: LocalBlock) {
        let _call = watch::enter(self.who, "removed", 0);
        // SAFETY: as in `closed`
        unsafe { self.ops.removed.expect("checked")(self.policy, block.number()) };
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        let candidates = FaCandidates {
            valid: lane.valid.raw.as_ptr(),
            erases: lane.erases.raw.as_ptr(),
            blocks: lane.valid.len() as u32,
            slots: lane.slots,
            at: moment(lane.at),
        };
        let call = watch::enter(self.who, "pick", lane.at.now.0);
        // SAFETY: as in `closed`; both arrays have an element for each block
        let block = unsafe { self.ops.pick.expect("checked")(self.policy, &candidates) };
        drop(call);
        if block == FA_FAULT {
            // SAFETY: as in `closed`
            let why = self.ops.fault.map(|fault| unsafe { fault(self.policy) });
            common::fault(self.who, "pick", lane.at.now, why);
        }
        (block != FA_NO_BLOCK).then_some(LocalBlock::new(block))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _call = watch::enter(self.who, "destroy", 0);
        // SAFETY: this is the last use of the policy
        unsafe { self.ops.destroy.expect("checked")(self.policy) };
    }
}
