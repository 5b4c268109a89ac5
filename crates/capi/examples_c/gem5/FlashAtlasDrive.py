"""A flash drive of FlashAtlas behind a register block, with DMA."""

from m5.objects.Device import DmaDevice
from m5.params import Param, VectorParam


class FlashAtlasDrive(DmaDevice):
    """The registers are described in flashatlas_drive.hh."""

    type = "FlashAtlasDrive"
    cxx_header = "dev/flashatlas/flashatlas_drive.hh"
    cxx_class = "gem5::FlashAtlasDrive"

    pio_addr = Param.Addr("Where the registers are")
    pio_latency = Param.Latency("100ns", "Time of an access to a register")
    preset = Param.String("tlc-small", "Drive that comes with FlashAtlas")
    settings = VectorParam.String([], "Settings over it: key=value")
    seed = Param.UInt64(1, "Seed of the drive")
    filled = Param.Bool(False, "Every mapping unit is written once before the simulation")
    record = Param.String("", "File in the output folder for counters and latencies (JSON)")
