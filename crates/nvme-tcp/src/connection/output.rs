//! Bytes that wait to be sent, in order.

use bytes::Bytes;
use std::collections::VecDeque;

/// Headers and responses are gathered in pieces of about this size.
const PIECE: usize = 4096;

enum Segment {
    /// Headers, digests and responses.
    Control(Vec<u8>),
    /// Data of a command; once it is sent, `release` bytes of room are free again.
    Data { bytes: Bytes, release: u32 },
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        match self {
            Segment::Control(bytes) => bytes,
            Segment::Data { bytes, .. } => bytes,
        }
    }
}

/// Queue of bytes to send.
#[derive(Default)]
pub(super) struct Output {
    segments: VecDeque<Segment>,
    /// Bytes of the first segment that are sent.
    sent: usize,
    /// Bytes of headers, digests and responses.
    control: usize,
}

impl Output {
    /// Appends a header, digest or response.
    pub fn push(&mut self, bytes: &[u8]) {
        self.control += bytes.len();
        match self.segments.back_mut() {
            Some(Segment::Control(last)) if last.len() < PIECE => last.extend_from_slice(bytes),
            _ => self.segments.push_back(Segment::Control(bytes.to_vec())),
        }
    }

    /// Appends data, whose room is free once it is sent.
    pub fn push_data(&mut self, bytes: Bytes, release: u32) {
        self.segments.push_back(Segment::Data { bytes, release });
    }

    /// Returns the bytes in order, in at least one part if there are any.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut skip = self.sent;
        self.segments.iter().map(move |segment| &segment.bytes()[std::mem::take(&mut skip)..])
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the bytes of headers, digests and responses that wait.
    pub fn control(&self) -> usize {
        self.control
    }

    /// Removes `bytes` that were sent, and returns the bytes of room that are free again.
    pub fn take(&mut self, mut bytes: usize) -> u32 {
        let mut released = 0;
        while bytes > 0 {
            let front = self.segments.front().expect("no more is sent than there was");
            let left = front.bytes().len() - self.sent;
            if bytes < left {
                self.sent += bytes;
                break;
            }
            bytes -= left;
            self.sent = 0;
            match self.segments.pop_front().expect("there is a first") {
                Segment::Control(all) => self.control -= all.len(),
                Segment::Data { release, .. } => released += release,
            }
        }
        released
    }
}
