//! The merge buffer, in which pages of small writes are gathered for a superpage (HARD, section
//! 14.2).

use super::map::NONE;
use flashatlas_types::{Ps, SECTOR_BYTES, Stamp, Tag};

/// The superpage that is being filled.
pub(super) struct Buffer {
    pages: usize,
    page_bytes: usize,
    /// Logical pages; [`NONE`] for a page that was since trimmed or written elsewhere.
    pub lpns: Vec<u32>,
    pub stamps: Vec<Stamp>,
    /// Bytes of the pages, if the layer keeps bytes.
    bytes: Option<Vec<u8>>,
    /// Time at which the first page arrived.
    pub since: Ps,
    /// Commands for which the write to the drive waits, such as reads that complete partial pages.
    pub after: Vec<Tag>,
    /// Tag of the write to the drive, reserved when the buffer is opened.
    pub tag: Tag,
    /// An earlier write that must be complete before the host may use this buffer.
    pub admitted_by: Option<Tag>,
}

impl Buffer {
    pub fn new(pages: u32, page_sectors: u32, keep_bytes: bool) -> Buffer {
        let page_bytes = (page_sectors * SECTOR_BYTES) as usize;
        Buffer {
            pages: pages as usize,
            page_bytes,
            lpns: Vec::with_capacity(pages as usize),
            stamps: Vec::with_capacity(pages as usize),
            bytes: keep_bytes.then(Vec::new),
            since: Ps::ZERO,
            after: Vec::new(),
            tag: Tag(0),
            admitted_by: None,
        }
    }

    /// Returns `true` if the buffer holds no page.
    pub fn is_empty(&self) -> bool {
        self.lpns.is_empty()
    }

    /// Returns `true` if every place is taken.
    pub fn is_full(&self) -> bool {
        self.lpns.len() == self.pages
    }

    /// Returns the number of free places.
    pub fn room(&self) -> usize {
        self.pages - self.lpns.len()
    }

    /// Returns the place of a logical page, or `None` if the buffer does not hold the page.
    #[inline]
    pub fn find(&self, lpn: u32) -> Option<usize> {
        self.lpns.iter().position(|&l| l == lpn)
    }

    /// Returns the bytes at a place, if the layer keeps bytes.
    pub fn bytes_at(&self, place: usize) -> Option<&[u8]> {
        self.bytes.as_ref().map(|b| &b[place * self.page_bytes..(place + 1) * self.page_bytes])
    }

    /// Puts a page into its place, or into the next free place if it has none.
    ///
    /// # Panics
    /// Panics if no place is free.
    pub fn put(&mut self, lpn: u32, stamp: Stamp, bytes: Option<&[u8]>) {
        let place = match self.find(lpn).filter(|_| lpn != NONE) {
            Some(place) => place,
            None => {
                assert!(!self.is_full(), "the buffer has no room");
                self.lpns.push(lpn);
                self.stamps.push(Stamp::ZERO);
                if let Some(all) = &mut self.bytes {
                    all.resize(self.lpns.len() * self.page_bytes, 0);
                }
                self.lpns.len() - 1
            }
        };
        self.stamps[place] = stamp;
        if let (Some(all), Some(bytes)) = (&mut self.bytes, bytes) {
            all[place * self.page_bytes..(place + 1) * self.page_bytes].copy_from_slice(bytes);
        }
    }

    /// Removes a page that was trimmed or is written elsewhere. Its place stays taken.
    ///
    /// Returns `true` if the buffer held the page.
    pub fn drop_page(&mut self, lpn: u32) -> bool {
        let place = self.find(lpn);
        if let Some(place) = place {
            (self.lpns[place], self.stamps[place]) = (NONE, Stamp::ZERO);
            if let Some(all) = &mut self.bytes {
                all[place * self.page_bytes..(place + 1) * self.page_bytes].fill(0);
            }
        }
        place.is_some()
    }

    /// Pads the buffer and empties it. Returns its pages, stamps and bytes.
    pub fn take(&mut self) -> (Vec<u32>, Vec<Stamp>, Option<Vec<u8>>) {
        self.lpns.resize(self.pages, NONE);
        self.stamps.resize(self.pages, Stamp::ZERO);
        let bytes = self.bytes.as_mut().map(|all| {
            all.resize(self.pages * self.page_bytes, 0);
            std::mem::take(all)
        });
        (std::mem::take(&mut self.lpns), std::mem::take(&mut self.stamps), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_comes_twice_is_replaced() {
        let mut buffer = Buffer::new(4, 1, true);
        let page = |byte| [byte; 512];
        buffer.put(7, Stamp(1), Some(&page(1)));
        buffer.put(8, Stamp(2), Some(&page(2)));
        buffer.put(7, Stamp(3), Some(&page(3)));
        assert_eq!((buffer.room(), buffer.find(7), buffer.stamps[0]), (2, Some(0), Stamp(3)));
        assert_eq!(buffer.bytes_at(0), Some(&page(3)[..]));
        assert!(buffer.drop_page(8) && !buffer.drop_page(9));
        assert_eq!(buffer.room(), 2, "the place stays taken");
        let (lpns, stamps, bytes) = buffer.take();
        assert_eq!(lpns, [7, NONE, NONE, NONE]);
        assert_eq!(stamps, [Stamp(3), Stamp::ZERO, Stamp::ZERO, Stamp::ZERO]);
        assert_eq!(bytes.unwrap(), [page(3), page(0), page(0), page(0)].concat());
        assert!(buffer.is_empty());
    }
}
