// A flash drive of FlashAtlas behind a register block, with DMA.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Registers, 8 bytes each, little-endian:
//
//   0x00  SECTORS    read: sectors of 512 bytes
//   0x08  LBA        first sector of the next command
//   0x10  COUNT      number of sectors of the next command
//   0x18  ADDRESS    buffer of the next command, a physical address
//   0x20  SUBMIT     write: op (fa_op) in bits 0 to 7, fua in bit 8, tag in bits 32 to 63
//   0x28  COMPLETED  read: takes the next completion. Bit 63 is 1 if there is one, the tag is in
//                    bits 32 to 62, and a fa_code is in bits 0 to 31
//
// A driver polls COMPLETED, because there is no interrupt. A command whose tag is in use gets
// FA_ERR_ARGUMENT.

#ifndef __DEV_FLASHATLAS_FLASHATLAS_DRIVE_HH__
#define __DEV_FLASHATLAS_FLASHATLAS_DRIVE_HH__

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <flashatlas.hpp>

#include "dev/dma_device.hh"
#include "params/FlashAtlasDrive.hh"
#include "sim/eventq.hh"

namespace gem5
{

class FlashAtlasDrive : public DmaDevice
{
  public:
    PARAMS(FlashAtlasDrive);
    FlashAtlasDrive(const Params &p);

    AddrRangeList getAddrRanges() const override;
    DrainState drain() override;
    void serialize(CheckpointOut &cp) const override;

  protected:
    Tick read(PacketPtr pkt) override;
    Tick write(PacketPtr pkt) override;

  private:
    struct Command
    {
        fa_command command;
        Addr address;
        std::vector<uint8_t> data;
    };

    // Begins the command that the registers describe. A write fetches its data first.
    void begin(uint64_t submitted);
    // Submits the command to the drive, at the current tick.
    void submit(uint32_t tag);
    // Handles the drive's next event, which is due.
    void advance();
    // Puts the completion of the command into COMPLETED.
    void finish(uint32_t tag, int code);
    void scheduleNext();
    void writeRecord() const;

    const Addr pioAddr;
    const Tick pioDelay;
    const std::string recordFile;

    flashatlas::Drive drive;
    uint64_t lba = 0, count = 0, address = 0;
    std::map<uint32_t, std::unique_ptr<Command>> inFlight;
    std::deque<uint64_t> completions;
    EventFunctionWrapper nextEvent;
};

} // namespace gem5

#endif // __DEV_FLASHATLAS_FLASHATLAS_DRIVE_HH__
