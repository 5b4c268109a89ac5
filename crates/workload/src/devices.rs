//! Address spaces by name.

use crate::raw::Fault;
use crate::source::MAX_DEVICES;
use crate::text::Field;
use rustc_hash::FxHashMap;

/// Numbers of address spaces, in order of first appearance.
#[derive(Default)]
pub(crate) struct Devices {
    numbers: FxHashMap<Box<[u8]>, u32>,
    last: Vec<u8>,
    last_number: u32,
}

impl Devices {
    /// Maximum number of bytes of a name; with [`MAX_DEVICES`] it bounds the memory of this table.
    const MAX_NAME: usize = 256;

    /// Returns the number of the device that `name` names.
    #[inline]
    pub fn number(&mut self, name: Field<'_>) -> Result<u32, Fault> {
        if name.text == self.last && !self.numbers.is_empty() {
            return Ok(self.last_number);
        }
        self.look_up(name)
    }

    fn look_up(&mut self, name: Field<'_>) -> Result<u32, Fault> {
        let next = self.numbers.len();
        let number = match self.numbers.get(name.text) {
            Some(&number) => number,
            None if name.text.is_empty() => {
                return Err(name.fault("an empty field", "the name of a device"));
            }
            None if name.text.len() > Devices::MAX_NAME => {
                return Err(name.fault("a device name that is too long", "at most 256 bytes"));
            }
            None if next == MAX_DEVICES as usize => {
                return Err(name.fault("one device too many", "at most 65,536 devices"));
            }
            None => {
                self.numbers.insert(name.text.into(), next as u32);
                next as u32
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name.text);
        self.last_number = number;
        Ok(number)
    }

    /// Returns the names in order of their numbers. Bytes that are not UTF-8 are replaced.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![String::new(); self.numbers.len()];
        for (name, &number) in &self.numbers {
            names[number as usize] = String::from_utf8_lossy(name).into_owned();
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> Field<'_> {
        Field { text: text.as_bytes(), start: 0 }
    }

    #[test]
    fn devices_are_numbered_as_they_appear_and_bounded() {
        let mut devices = Devices::default();
        let mut number = |name: &str| devices.number(field(name)).map_err(|f| f.why);
        assert_eq!(["b", "a", "a", "b"].map(|n| number(n).unwrap()), [0, 1, 1, 0]);
        assert_eq!(number("").unwrap_err(), "an empty field");
        assert_eq!(number(&"x".repeat(257)).unwrap_err(), "a device name that is too long");
        for i in 2..65_536 {
            assert_eq!(number(&format!("d{i}")).unwrap(), i);
        }
        assert_eq!(number("one more").unwrap_err(), "one device too many");
        assert_eq!(number("a").unwrap(), 1);
        assert_eq!(devices.names()[..3], ["b", "a", "d2"]);
    }
}
