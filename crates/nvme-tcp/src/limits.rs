//! Bounds of one connection.

/// Maximum number of bytes of in-capsule data of admin and Fabrics commands (section 3.3.1).
pub const ADMIN_CAPSULE_DATA: u32 = 8192;

/// Bounds of a connection: what it announces to the host, and what it stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Entries of the largest queue: MQES + 1.
    pub entries: u16,
    /// Bytes of in-capsule data of an I/O command: IOCCSZ × 16 − 64.
    pub capsule_data: u32,
    /// Maximum number of bytes that one command transfers (MDTS).
    pub transfer: u32,
    /// Maximum number of bytes of data that the connection stores for all commands together,
    /// without in-capsule data; at least `transfer`. A command whose data has no room waits.
    pub data: u32,
    /// Maximum number of bytes of data in one H2CData PDU (MAXH2CDATA); a multiple of 4.
    pub h2c_data: u32,
    /// Maximum number of bytes of data in one C2HData PDU; a multiple of 4.
    pub c2h_data: u32,
    /// Maximum number of bytes that one R2T asks for; a multiple of 4.
    pub r2t: u32,
    /// Maximum number of outstanding R2T PDUs of one command; the host may support fewer (MAXR2T).
    pub r2ts: u32,
}

impl Limits {
    /// The bounds of connections, unless a target has smaller bounds.
    pub const DEFAULT: Limits = Limits {
        entries: 128,
        capsule_data: 8192,
        transfer: 1 << 20,
        data: 4 << 20,
        h2c_data: 128 << 10,
        c2h_data: 128 << 10,
        r2t: 512 << 10,
        r2ts: 2,
    };

    /// Number of bytes of headers and responses that may wait before the connection stops
    /// receiving.
    pub(crate) const CONTROL: usize = 64 << 10;

    /// Returns the maximum number of bytes of memory that a connection takes, without buffers of
    /// the socket.
    pub const fn memory(&self) -> usize {
        let capsule = if self.capsule_data > ADMIN_CAPSULE_DATA {
            self.capsule_data
        } else {
            ADMIN_CAPSULE_DATA
        };
        // Beside its data, a command has an entry in a queue and in two tables, and some headers
        // and digests for each PDU of its data. Vectors grow by doubling.
        let pdus = self.transfer as usize / smaller(self.c2h_data, self.r2t) as usize + 2;
        let command = capsule as usize + 1024 + 2 * 160 * pdus;
        self.data as usize + self.entries as usize * command + 4 * Limits::CONTROL
    }

    /// Checks that the bounds fit together.
    ///
    /// # Panics
    /// Panics if the bounds do not fit together.
    pub(crate) fn check(&self) {
        assert!(self.entries >= 2 && self.r2ts >= 1, "{self:?}");
        // transfer tags have 16 bits
        assert!(u64::from(self.entries) * u64::from(self.r2ts) <= 1 << 15, "{self:?}");
        assert!(self.data >= self.transfer && self.transfer % 4 == 0, "{self:?}");
        for each in [self.transfer, self.h2c_data, self.c2h_data, self.r2t] {
            assert!(each > 0 && each % 4 == 0, "{self:?}");
        }
    }
}

const fn smaller(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

/// Maximum number of bytes of memory that a connection with the default bounds takes.
pub const CONNECTION_BYTES: usize = Limits::DEFAULT.memory();
