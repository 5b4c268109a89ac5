//! A client of NBD (the protocol document of the NBD project), with the structure of the NVMe/TCP
//! initiator: blocking calls, a `write` for each request, and reads of 64 KiB.

use crate::load::{Client, Failed, READ};
use flashatlas_nvme_tcp::initiator::poll_read;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
/// Bytes of a request, and of a simple reply before its data.
const REQUEST_BYTES: usize = 28;
const REPLY_BYTES: usize = 16;

/// Time that a client that polls waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub struct Nbd {
    stream: TcpStream,
    next: u64,
    /// Bytes of data that the reply to a request brings.
    open: HashMap<u64, usize>,
    input: Vec<u8>,
    taken: usize,
    polls: bool,
}

impl Nbd {
    /// Connects to the export without a name.
    pub fn connect(address: &str, polls: bool) -> Result<Nbd, Failed> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut hello = [0; 18];
        stream.read_exact(&mut hello)?;
        if hello[..8] != MAGIC.to_be_bytes() || hello[8..16] != OPTION.to_be_bytes() {
            return Err("no server of NBD in its fixed newstyle".into());
        }
        // the export's size and flags are answered without the zeros behind them
        let mut asks = 3u32.to_be_bytes().to_vec();
        asks.extend(OPTION.to_be_bytes());
        asks.extend(1u32.to_be_bytes());
        asks.extend(0u32.to_be_bytes());
        stream.write_all(&asks)?;
        stream.read_exact(&mut [0; 10])?;
        Ok(Nbd { stream, next: 0, open: HashMap::new(), input: Vec::new(), taken: 0, polls })
    }

    fn request(&mut self, kind: u16, offset: u64, bytes: u32, data: &[u8]) -> Result<u64, Failed> {
        let name = self.next;
        self.next += 1;
        let mut request = Vec::with_capacity(REQUEST_BYTES + data.len());
        request.extend(REQUEST.to_be_bytes());
        request.extend(0u16.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend(name.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(bytes.to_be_bytes());
        request.extend(data);
        self.open.insert(name, if data.is_empty() { bytes as usize } else { 0 });
        self.stream.write_all(&request)?;
        Ok(name)
    }

    /// Waits until `bytes` bytes have arrived that were not taken.
    fn need(&mut self, bytes: usize) -> Result<(), Failed> {
        while self.input.len() - self.taken < bytes {
            self.input.drain(..std::mem::take(&mut self.taken));
            let there = self.input.len();
            self.input.resize(there + (64 << 10), 0);
            let input = &mut self.input[there..];
            let read = if self.polls {
                poll_read(&mut self.stream, input, PATIENCE)?
            } else {
                self.stream.read(input)?
            };
            self.input.truncate(there + read);
            if read == 0 {
                return Err("the server closed the connection".into());
            }
        }
        Ok(())
    }

    /// Waits for a reply, and returns the identifier of its request and its data.
    fn reply(&mut self) -> Result<(u64, Vec<u8>), Failed> {
        self.need(REPLY_BYTES)?;
        let head = &self.input[self.taken..][..REPLY_BYTES];
        let (magic, error) = (&head[..4], u32::from_be_bytes(head[4..8].try_into()?));
        if magic != REPLY.to_be_bytes() || error != 0 {
            return Err(format!("a request failed with error {error}").into());
        }
        let name = u64::from_be_bytes(head[8..].try_into()?);
        let bytes = self.open.remove(&name).ok_or("a reply that nobody waits for")?;
        self.need(REPLY_BYTES + bytes)?;
        let data = self.input[self.taken + REPLY_BYTES..][..bytes].to_vec();
        self.taken += REPLY_BYTES + bytes;
        Ok((name, data))
    }
}

impl Client for Nbd {
    fn submit(&mut self, offset: u64) -> Result<u64, Failed> {
        self.request(0, offset, READ, &[])
    }

    fn wait(&mut self) -> Result<(u64, [u8; 8]), Failed> {
        let (name, data) = self.reply()?;
        Ok((name, data.get(..8).ok_or("a read without data")?.try_into()?))
    }

    fn write(&mut self, offset: u64, data: Vec<u8>) -> Result<(), Failed> {
        let name = self.request(1, offset, u32::try_from(data.len())?, &data)?;
        let (done, _) = self.reply()?;
        if done == name { Ok(()) } else { Err("the reply is to another request".into()) }
    }
}
