//! Work on the host link and on the channels. This file chooses the next operation, and the step
//! that follows its transfer.

use crate::engine::Engine;
use crate::map_waits::HostRead;
use crate::nodes::{NIL, Node, NodeKind};
use crate::paths::State;
use crate::resources::Phase;
use flashatlas_types::Dur;

impl Engine {
    fn way(&self, work: NodeKind) -> u32 {
        u32::from(self.times.full_duplex && work == NodeKind::LinkOut)
    }

    pub(crate) fn queue_on_link(&mut self, n: u32) {
        let way = self.way(self.nodes.at(n).work);
        self.state(n, State::LinkQueue);
        let link = &mut self.links[way as usize];
        if link.is_vacant() {
            return self.start_on_link(way, n);
        }
        link.queue.push(&mut self.nodes, n, self.now);
        self.next_on_link(way);
    }

    fn next_on_link(&mut self, way: u32) {
        let link = &mut self.links[way as usize];
        if link.current != NIL {
            return;
        }
        let Some(n) = link.queue.first(self.now, self.times.passed_max) else { return };
        link.queue.pop(&self.nodes, n, self.now);
        self.start_on_link(way, n);
    }

    fn start_on_link(&mut self, way: u32, n: u32) {
        let node = self.nodes.at(n);
        let (time, out) = (node.time, usize::from(node.work == NodeKind::LinkOut));
        self.statistics.link_busy[out] = self.statistics.link_busy[out] + time;
        let until = self.now.after(time);
        let link = &mut self.links[way as usize];
        (link.current, link.until) = (n, until);
        self.state(n, State::Link);
        self.agenda.set_link(until, way);
    }

    pub(crate) fn link_done(&mut self, way: u32) {
        let n = std::mem::replace(&mut self.links[way as usize].current, NIL);
        match self.nodes.at(n).work {
            NodeKind::LinkIn => self.take_in(n),
            _ => self.complete(n),
        }
        self.next_on_link(way);
    }

    /// Puts operation `n` on its channel or into the channel's queue. A transfer that takes no time
    /// does not queue.
    pub(crate) fn use_channel(&mut self, n: u32) {
        let node = self.nodes.at(n);
        let (channel, time) = (self.die_channel[node.die as usize], self.channel_time(node));
        if time == Dur::ZERO {
            return self.on_channel_done(n);
        }
        self.state(n, State::ChannelQueue);
        let bus = &mut self.channels[channel as usize];
        if bus.is_vacant() {
            return self.start_on_channel(channel, n, time);
        }
        bus.queue.push(&mut self.nodes, n, self.now);
        self.next_on_channel(channel);
    }

    fn next_on_channel(&mut self, channel: u32) {
        let bus = &mut self.channels[channel as usize];
        if bus.current != NIL {
            return;
        }
        let Some(n) = bus.queue.first(self.now, self.times.passed_max) else { return };
        bus.queue.pop(&self.nodes, n, self.now);
        let time = self.channel_time(self.nodes.at(n));
        self.start_on_channel(channel, n, time);
    }

    fn start_on_channel(&mut self, channel: u32, n: u32, time: Dur) {
        let busy = &mut self.statistics.channel_busy[channel as usize];
        *busy = *busy + time;
        let until = self.now.after(time);
        let bus = &mut self.channels[channel as usize];
        (bus.current, bus.until) = (n, until);
        self.state(n, State::Channel);
        self.agenda.set_channel(until, channel);
        self.nodes.prefetch_end(n);
    }

    /// Returns the time that an operation takes on its channel.
    ///
    /// An erase and a read whose page is not sensed yet put their command on the channel. A read
    /// whose page is sensed puts its data on the channel. A program puts its command and its data
    /// there. The status of a program or an erase comes after its cells.
    #[inline]
    fn channel_time(&self, node: &Node) -> Dur {
        // most drives leave the status out, and then no die is looked at
        if self.times.status > Dur::ZERO && self.reads_status(node) {
            return self.times.status;
        }
        match node.work {
            NodeKind::Read if node.halfway => node.time,
            NodeKind::Read | NodeKind::Erase => self.times.command,
            NodeKind::Copyback => self.copyback_on_channel(node),
            _ => node.time,
        }
    }

    /// Returns `true` if an operation is a program or an erase whose cells have finished.
    fn reads_status(&self, node: &Node) -> bool {
        let die = &self.dies[node.die as usize];
        die.phase == Phase::Status && self.nodes.at(die.current).id == node.id
    }

    pub(crate) fn channel_done(&mut self, channel: u32) {
        let n = std::mem::replace(&mut self.channels[channel as usize].current, NIL);
        self.on_channel_done(n);
        self.next_on_channel(channel);
    }

    pub(crate) fn on_channel_done(&mut self, n: u32) {
        let Node { die: d, work, halfway: sensed, .. } = *self.nodes.at(n);
        let beside = self.is_beside(d, n);
        let die = &mut self.dies[d as usize];
        match work {
            NodeKind::Read if sensed => {
                if beside {
                    die.planes.retain(|&other| other != n);
                } else if die.cached == n {
                    die.cached = NIL;
                    if die.phase == Phase::WaitCache {
                        self.read_to_cache(d);
                    }
                } else {
                    die.current = NIL;
                    die.phase = Phase::Idle;
                }
                let of_map = self.nodes.at(n).host_read == HostRead::OfItsMap;
                self.take_in(n);
                if !(of_map && self.rests_on(d)) {
                    self.next_on_die(d);
                }
            }
            NodeKind::Program if die.cached == n => {
                die.loaded = true;
                if die.current == NIL {
                    self.promote(d);
                } else {
                    self.state(n, State::Register);
                }
            }
            _ if beside => self.sense_plane(n),
            _ if die.phase == Phase::Status => self.operation_done(d),
            _ => self.start_cells(d),
        }
        self.note_work(d);
    }
}
