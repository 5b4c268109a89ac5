//! Devices, each with the source of its numbers.

use super::{Device, Timings};

/// One device.
pub struct Preset {
    /// Name in `dram.preset`.
    pub name: &'static str,
    /// One line, with the sources of its numbers.
    pub summary: &'static str,
    /// Banks of the device.
    pub device: Device,
    /// Timings of the device.
    pub timings: Timings,
}

/// All devices. The first, `table-1`, is the device of the paper.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "table-1",
        summary: "the paper's device: RCD, CL, RTP, CCD, RP and DL of Song et al. (2019), Table I, \
                  at 1.5 ns, the only clock that fits CL 9 and RTP 5 of DDR4; the other timings \
                  are those of DDR4-1333 in JESD79-4, for the 4 Gb x8 part that the paper cites \
                  (MT40A512M8)",
        device: Device {
            groups: 4,
            banks: 16,
            rows: 1 << 15,
            columns: 1024,
            bus_bits: 8,
            burst_length: 8,
        },
        timings: Timings {
            tck_ps: 1500,
            rcd: 9,
            cl: 9,
            rp: 9,
            rtp: 5,
            dl: 4,
            ccd_s: 4,
            ccd_l: 5,
            ras: 24,
            rrd_s: 4,
            rrd_l: 4,
            faw: 17,
            cwl: 9,
            wr: 10,
            wtr_s: 2,
            wtr_l: 5,
            refi: 5200,
            rfc: 174,
        },
    },
    Preset {
        name: "ddr4-2400",
        summary: "one 8 Gb x8 DDR4-2400 device (16-16-16), as DRAMsim3's DDR4_8Gb_x8_2400.ini has \
                  Micron's MT40A1G8; RTP 7.5 ns",
        device: Device {
            groups: 4,
            banks: 16,
            rows: 1 << 16,
            columns: 1024,
            bus_bits: 8,
            burst_length: 8,
        },
        timings: Timings {
            tck_ps: 833,
            rcd: 16,
            cl: 16,
            rp: 16,
            rtp: 9,
            dl: 4,
            ccd_s: 4,
            ccd_l: 6,
            ras: 39,
            rrd_s: 4,
            rrd_l: 6,
            faw: 26,
            cwl: 16,
            wr: 19,
            wtr_s: 3,
            wtr_l: 9,
            refi: 9364,
            rfc: 420,
        },
    },
    Preset {
        name: "ddr4-3200",
        summary: "one 8 Gb x8 DDR4-3200 device (22-22-22), as in DRAMsim3's DDR4_8Gb_x8_3200.ini",
        device: Device {
            groups: 4,
            banks: 16,
            rows: 1 << 16,
            columns: 1024,
            bus_bits: 8,
            burst_length: 8,
        },
        timings: Timings {
            tck_ps: 625,
            rcd: 22,
            cl: 22,
            rp: 22,
            rtp: 12,
            dl: 4,
            ccd_s: 4,
            ccd_l: 8,
            ras: 52,
            rrd_s: 4,
            rrd_l: 8,
            faw: 34,
            cwl: 16,
            wr: 24,
            wtr_s: 4,
            wtr_l: 12,
            refi: 12480,
            rfc: 560,
        },
    },
    Preset {
        name: "lpddr4-3200",
        summary: "one x16 channel of an 8 Gb LPDDR4-3200 die, as in Ramulator's LPDDR4.h, where \
                  commands of several clocks count as one; refresh of JESD209-4 (3.904 us, 180 ns)",
        device: Device {
            groups: 1,
            banks: 8,
            rows: 1 << 15,
            columns: 1024,
            bus_bits: 16,
            burst_length: 16,
        },
        timings: Timings {
            tck_ps: 625,
            rcd: 29,
            cl: 32,
            rp: 27,
            rtp: 14,
            dl: 8,
            ccd_s: 8,
            ccd_l: 8,
            ras: 68,
            rrd_s: 16,
            rrd_l: 16,
            faw: 64,
            cwl: 18,
            wr: 28,
            wtr_s: 16,
            wtr_l: 16,
            refi: 6246,
            rfc: 288,
        },
    },
    Preset {
        name: "lpddr5-6400",
        summary: "one x16 channel of an 8 Gb LPDDR5-6400 die, as in Ramulator 2's LPDDR5.cpp \
                  (clock CK of 800 MHz, 4 clocks a burst, activations counted as one command); \
                  refresh 3.906 us, 210 ns",
        device: Device {
            groups: 4,
            banks: 16,
            rows: 1 << 15,
            columns: 1024,
            bus_bits: 16,
            burst_length: 16,
        },
        timings: Timings {
            tck_ps: 1250,
            rcd: 15,
            cl: 20,
            rp: 15,
            rtp: 4,
            dl: 4,
            ccd_s: 4,
            ccd_l: 4,
            ras: 34,
            rrd_s: 4,
            rrd_l: 4,
            faw: 16,
            cwl: 11,
            wr: 28,
            wtr_s: 5,
            wtr_l: 10,
            refi: 3125,
            rfc: 168,
        },
    },
];
