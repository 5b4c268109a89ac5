//! Map requests: the queue of subregions to fetch, the fetches in flight, and the notices in
//! responses.

use super::regions::SubregionState;
use super::{HpbHost, OWN};
use flashatlas_device::hpb::Notice;
use flashatlas_device::{Cmd, Done, Reply, SubmitError};
use flashatlas_types::{Lpn, Ps, Tag};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A fetch of a subregion that is in flight.
struct Fetch {
    tag: Tag,
    subregion: u32,
    /// The number of the command that fetches the subregion.
    made: u64,
    entries: Vec<u64>,
}

/// Subregions to be fetched, and fetches in flight.
#[derive(Default)]
pub(super) struct Requests {
    queue: VecDeque<u32>,
    fetches: Vec<Fetch>,
    /// Notices in the responses to commands in flight, with the number of each command.
    notices: FxHashMap<Tag, (u64, Box<Notice>)>,
    /// Commands in flight that give a region back.
    returning: Vec<Tag>,
    /// Number of commands so far.
    pub sent: u64,
}

impl Requests {
    /// Returns `true` if a command is in flight whose completion the host must handle.
    #[inline]
    pub fn expects_any(&self) -> bool {
        self.own_in_flight() || !self.notices.is_empty()
    }

    /// Returns `true` if commands of the layer itself are in flight.
    #[inline]
    pub fn own_in_flight(&self) -> bool {
        !self.fetches.is_empty() || !self.returning.is_empty()
    }
}

impl HpbHost {
    fn own_tag(&self) -> Tag {
        Tag(OWN | self.requests.sent)
    }

    /// Notes that a command was accepted. Stores the notice of its response until the command
    /// completes.
    #[inline]
    pub(super) fn sent(&mut self, now: Ps, tag: Tag, reply: &mut Reply) {
        self.requests.sent += 1;
        if let Some(notice) = reply.notice.take() {
            let notice = self.link.notice(notice);
            let made = self.requests.sent;
            if self.instant {
                self.apply_notice(now, made, &notice)
            } else {
                drop(self.requests.notices.insert(tag, (made, notice)))
            }
        }
    }

    /// Adds a subregion to the queue of subregions to be fetched, if there is memory for it.
    pub(super) fn want(&mut self, now: Ps, index: u32) {
        match self.regions.subregion(index).state {
            SubregionState::Unused => {
                if !self.make_room(now, index) {
                    self.counters.no_room += 1;
                    return;
                }
                self.regions.hold(index);
                self.arm_timer(now, self.regions.region_of(index));
            }
            SubregionState::Issued => {
                self.regions.subregion(index).again = true;
                return;
            }
            SubregionState::Invalid => {}
            SubregionState::Valid => self.counters.refetches += 1,
        }
        let subregion = self.regions.subregion(index);
        subregion.state = SubregionState::Invalid;
        if !std::mem::replace(&mut subregion.queued, true) {
            self.requests.queue.push_back(index);
        }
    }

    /// Sends map requests until the allowed number is in flight.
    pub(super) fn pump(&mut self, now: Ps) {
        while self.requests.fetches.len() < self.settings.requests {
            let Some(index) = self.requests.queue.pop_front() else { return };
            let subregion = self.regions.subregion(index);
            subregion.queued = false;
            if subregion.state != SubregionState::Invalid {
                continue; // the subregion was dropped in the meantime
            }
            subregion.state = SubregionState::Issued;
            subregion.dirty.clear();
            let region = self.regions.region_of(index);
            self.regions.region(region).written = false;
            let tag = self.own_tag();
            let subregion = self.link.fetch(index, self.settings.terms.pages(index).len() as u32);
            let Ok(reply) = self.send_own(now, tag, Cmd::ReadBuffer { subregion }) else {
                self.counters.failed_requests += 1;
                self.regions.release(index);
                continue;
            };
            let entry_bytes = u64::from(self.settings.terms.protect.entry_bytes());
            self.counters.map_requests += 1;
            self.counters.map_bytes += reply.entries.len() as u64 * entry_bytes;
            let entries = self.link.fetched(reply.entries);
            let fetch = Fetch { tag, subregion: index, made: self.requests.sent, entries };
            if self.instant { self.fetched(now, fetch) } else { self.requests.fetches.push(fetch) }
        }
    }

    /// Gives back a region that the host itself decided to drop.
    pub(super) fn give_back(&mut self, now: Ps, region: u32) {
        let tag = self.own_tag();
        let region = self.link.give_back(region);
        let cmd = Cmd::WriteBuffer { region: Some(region) };
        if self.send_own(now, tag, cmd).is_ok() && !self.instant {
            self.requests.returning.push(tag);
        }
    }

    /// Sends a command of the layer itself.
    ///
    /// A refused command is not a failure of the layer, because the host's part of the map only
    /// saves time.
    fn send_own(&mut self, now: Ps, tag: Tag, cmd: Cmd<'_>) -> Result<Reply, SubmitError> {
        let mut reply = Reply::default();
        self.device.submit(now, tag, cmd, &mut reply)?;
        self.sent(now, tag, &mut reply);
        Ok(reply)
    }

    /// Handles the commands in `done`, which are complete at `now`.
    ///
    /// Commands from above are appended to `out`, and the notices in the responses are applied.
    pub(super) fn arrived(&mut self, now: Ps, done: &mut Vec<Done>, out: &mut Vec<Done>) {
        for d in done.drain(..) {
            if d.tag.0 & OWN == 0 {
                out.push(d);
            } else if let Some(at) = self.requests.fetches.iter().position(|f| f.tag == d.tag) {
                let fetch = self.requests.fetches.swap_remove(at);
                self.fetched(now, fetch);
            } else {
                self.requests.returning.retain(|&tag| tag != d.tag);
            }
            if let Some((made, notice)) = self.requests.notices.remove(&d.tag) {
                self.apply_notice(now, made, &notice);
            }
        }
        self.pump(now);
    }

    fn fetched(&mut self, now: Ps, fetch: Fetch) {
        let remark = self.settings.remark;
        let subregion = self.regions.subregion(fetch.subregion);
        (subregion.entries, subregion.made) = (fetch.entries, fetch.made);
        subregion.state = SubregionState::Valid;
        if !remark {
            subregion.dirty.clear();
        }
        if std::mem::take(&mut subregion.again) {
            self.want(now, fetch.subregion);
        }
        self.keep_within_limit(now);
    }

    /// Applies the notice in the response to command `made`.
    fn apply_notice(&mut self, now: Ps, made: u64, notice: &Notice) {
        let host_controls = self.settings.terms.host_controls;
        if notice.reset {
            self.counters.notices_reset += 1;
            self.forget_entries(made);
        }
        for &region in &notice.inactive {
            self.counters.notices_inactive += 1;
            // in host control, only the host decides to drop regions; pinned regions are never
            // dropped
            if !host_controls && !self.regions.region(region).pinned {
                self.counters.inactivated += u64::from(self.regions.is_active(region));
                self.regions.drop_region(region);
            }
        }
        for &subregion in &notice.active {
            self.counters.notices_active += 1;
            let region = self.regions.region_of(subregion);
            let active = self.regions.is_active(region);
            if self.asked_since(subregion, made) {
                continue;
            }
            if !host_controls || (active && !self.regions.region(region).written) {
                self.want(now, subregion);
            }
        }
        for &(lpn, entry) in &notice.pairs {
            self.counters.pairs += 1;
            self.replace(lpn, entry, made);
            // responses to earlier commands may arrive later and contain older entries of the page
            self.drop_stale_pairs(made, |pair| pair != lpn);
        }
    }

    /// Returns `true` if a subregion's entries were or are being fetched by a command after `made`.
    fn asked_since(&mut self, subregion: u32, made: u64) -> bool {
        match self.regions.subregion(subregion).state {
            SubregionState::Issued => {
                self.requests.fetches.iter().any(|f| f.subregion == subregion && f.made > made)
            }
            SubregionState::Valid => self.regions.subregion(subregion).made > made,
            SubregionState::Unused | SubregionState::Invalid => false,
        }
    }

    /// Replaces the entry of a page by an entry that came with the response to command `made`.
    fn replace(&mut self, lpn: Lpn, entry: u64, made: u64) {
        let index = self.settings.terms.subregion_of(lpn);
        // if a fetch in flight contains the old entry of the page, the new entry replaces it there
        if let Some(fetch) =
            self.requests.fetches.iter_mut().find(|f| f.subregion == index && f.made < made)
        {
            fetch.entries[(lpn.0 - self.settings.terms.pages(index).start) as usize] = entry;
            self.regions.clean(lpn);
        } else {
            self.regions.replace(lpn, entry, made);
        }
    }

    /// Removes pairs for which `still` returns `false` from the responses to commands before
    /// `made`.
    fn drop_stale_pairs(&mut self, made: u64, still: impl Fn(Lpn) -> bool) {
        for (number, notice) in self.requests.notices.values_mut() {
            if *number < made {
                notice.pairs.retain(|(lpn, _)| still(*lpn));
            }
        }
    }

    /// Drops or refetches all entries that were made before command `made`, because the drive has a
    /// new key.
    fn forget_entries(&mut self, made: u64) {
        for fetch in self.requests.fetches.iter().filter(|fetch| fetch.made < made) {
            self.regions.subregion(fetch.subregion).again = true;
        }
        for region in 0..self.settings.terms.region_count() {
            if !self.regions.has_entries_before(region, made) {
                continue;
            }
            if self.settings.terms.host_controls || self.regions.region(region).pinned {
                self.regions.region(region).update = true;
            } else {
                self.regions.drop_region(region);
            }
        }
    }

    /// Notes that the next command writes or trims `pages`.
    pub(super) fn written(&mut self, pages: std::ops::Range<u32>) {
        self.regions.mark(pages.clone());
        if !self.requests.notices.is_empty() {
            self.drop_stale_pairs(u64::MAX, |lpn| !pages.contains(&lpn.0));
        }
    }
}
