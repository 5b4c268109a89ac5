//! A client of NVMe over TCP: the native initiator, with one I/O queue.

use crate::load::{Client, Failed, READ};
use flashatlas_nvme_tcp::initiator::{self, Controller, Options, QueuePair};
use std::net::SocketAddr;

/// Bytes of a logical block.
const BLOCK: u32 = 512;

/// A host with an I/O queue.
pub struct Host {
    queue: QueuePair,
    /// The controller. It is kept, because the association ends with its admin queue.
    _controller: Controller,
}

impl Host {
    /// Connects as Linux does: with queues of 128 entries and without flow control.
    pub fn connect(address: SocketAddr, subsystem: &str, polls: bool) -> Result<Host, Failed> {
        let host = initiator::Host { nqn: "nqn.2026-11.example:bench".into(), id: [7; 16] };
        let usual = Options::default();
        let options = Options { entries: 128, without_flow_control: true, polls, ..usual };
        let mut controller = Controller::enabled(address, subsystem, &host, &options)?;
        let queue = controller.add_queue()?;
        Ok(Host { queue, _controller: controller })
    }
}

impl Client for Host {
    fn submit(&mut self, offset: u64) -> Result<u64, Failed> {
        let first = offset / u64::from(BLOCK);
        Ok(self.queue.submit_read(first, READ / BLOCK, BLOCK)?.into())
    }

    fn wait(&mut self) -> Result<(u64, [u8; 8]), Failed> {
        let (id, done) = self.queue.wait_any()?;
        if done.status() != 0 {
            return Err(format!("a read failed with status {:04x}h", done.status()).into());
        }
        Ok((id.into(), done.data.get(..8).ok_or("a read without data")?.try_into()?))
    }

    fn write(&mut self, offset: u64, data: Vec<u8>) -> Result<(), Failed> {
        Ok(self.queue.write(offset / u64::from(BLOCK), BLOCK, data)?)
    }
}
