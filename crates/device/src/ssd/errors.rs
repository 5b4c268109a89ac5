//! A drive whose flash has errors: reads of lost data, and work that is due while the drive is
//! busy.

use super::{Begun, Ssd};
use flashatlas_types::{Class, FtlError, MediumError, OpId, OpKind, Ps, Tag};

impl Ssd {
    /// Returns the error of a read. After a call of [`Ssd::complete_unreadable`], the retries of an
    /// unreadable page take time on the flash, and the command completes after the last retry.
    #[cold]
    #[inline(never)]
    pub(super) fn unread(&mut self, now: Ps, tag: Tag, error: FtlError) -> FtlError {
        let lost = matches!(error, FtlError::Medium(MediumError::Unreadable(_)));
        if lost && self.failed.is_none() && self.completes_unreadable && !self.instant {
            let begun: Vec<OpId> = self.plan.iter().map(|(id, ..)| id).collect();
            self.plan.push(OpKind::Complete(tag), Class::HostRead, &begun);
            self.issue(now);
        }
        error
    }

    /// Does the work of the FTL that is due. The work is added to the plan of a command, but the
    /// command does not wait for it.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_up(&mut self, begun: &Begun) -> Result<(), FtlError> {
        let worked = self.with_ftl(&begun.command, |ftl, cx| ftl.keep_up(cx));
        if worked.map_err(|error| self.fail(error))? {
            self.settle();
        }
        Ok(())
    }

    /// Makes reads of unreadable data complete in their time. The error of such a read is returned
    /// when it is submitted, and the command completes after the last retry.
    pub fn complete_unreadable(&mut self) {
        self.completes_unreadable = true;
    }
}
