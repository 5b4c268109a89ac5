// SPDX-License-Identifier: MIT OR Apache-2.0

#include "dev/flashatlas/flashatlas_drive.hh"

#include <algorithm>

#include "base/logging.hh"
#include "base/output.hh"
#include "mem/packet_access.hh"
#include "sim/core.hh"

namespace gem5
{

namespace
{

constexpr Addr REGISTER_BYTES = 0x30;
constexpr uint64_t TAG_MASK = 0x7fffffff;

// An error of the configuration ends the simulation with the library's message.
flashatlas::Drive
made(const FlashAtlasDriveParams &p)
{
    try {
        flashatlas::Drive drive(p.preset, p.settings, p.seed);
        if (p.filled)
            drive.fill();
        drive.reset_counters();
        return drive;
    } catch (const flashatlas::Error &error) {
        fatal("%s: %s", p.name, error.what());
    }
}

// gem5's ticks are picoseconds by default, like the drive's times. Other ticks are an error.
uint64_t
now()
{
    fatal_if(sim_clock::Frequency != 1000000000000ULL,
             "FlashAtlasDrive needs ticks of one picosecond");
    return curTick();
}

} // anonymous namespace

FlashAtlasDrive::FlashAtlasDrive(const Params &p)
    : DmaDevice(p), pioAddr(p.pio_addr), pioDelay(p.pio_latency),
      recordFile(p.record), drive(made(p)),
      nextEvent([this] { advance(); }, name() + ".nextEvent")
{
    if (!recordFile.empty())
        registerExitCallback([this] { writeRecord(); });
}

AddrRangeList
FlashAtlasDrive::getAddrRanges() const
{
    return {RangeSize(pioAddr, REGISTER_BYTES)};
}

Tick
FlashAtlasDrive::read(PacketPtr pkt)
{
    uint64_t value = 0;
    switch (pkt->getAddr() - pioAddr) {
      case 0x00:
        value = drive.geometry().sectors;
        break;
      case 0x08:
        value = lba;
        break;
      case 0x10:
        value = count;
        break;
      case 0x18:
        value = address;
        break;
      case 0x28:
        if (!completions.empty()) {
            value = completions.front();
            completions.pop_front();
        }
        break;
      default:
        warn("%s: read of offset %#x", name(), pkt->getAddr() - pioAddr);
    }
    pkt->setUintX(value, ByteOrder::little);
    pkt->makeAtomicResponse();
    return pioDelay;
}

Tick
FlashAtlasDrive::write(PacketPtr pkt)
{
    const uint64_t value = pkt->getUintX(ByteOrder::little);
    switch (pkt->getAddr() - pioAddr) {
      case 0x08:
        lba = value;
        break;
      case 0x10:
        count = value;
        break;
      case 0x18:
        address = value;
        break;
      case 0x20:
        begin(value);
        break;
      default:
        warn("%s: write to offset %#x", name(), pkt->getAddr() - pioAddr);
    }
    pkt->makeAtomicResponse();
    return pioDelay;
}

void
FlashAtlasDrive::begin(uint64_t submitted)
{
    const uint32_t tag = (submitted >> 32) & TAG_MASK;
    const auto op = static_cast<fa_op>(submitted & 0xff);
    const bool moves = op == FA_OP_READ || op == FA_OP_WRITE;
    // the check must come before the allocation, because `count` can be any number
    if (inFlight.count(tag) || count > drive.geometry().sectors) {
        completions.push_back((1ULL << 63) | (uint64_t(tag) << 32) | FA_ERR_ARGUMENT);
        return;
    }
    auto made = std::make_unique<Command>();
    // a flush has no range, so it ignores the registers LBA and COUNT
    made->command = op == FA_OP_FLUSH
                        ? flashatlas::flush()
                        : flashatlas::command(op, lba, static_cast<uint32_t>(count));
    made->command.fua = (submitted >> 8) & 1;
    made->address = address;
    // if the drive stores stamps, the bytes are transferred as well, but their values do not matter
    made->data.resize(moves ? count * FA_SECTOR_BYTES : 0);
    Command &command = *made;
    inFlight[tag] = std::move(made);
    if (op == FA_OP_WRITE && count > 0) {
        auto *fetched =
            new EventFunctionWrapper([this, tag] { submit(tag); }, name() + ".fetched", true);
        dmaRead(command.address, command.data.size(), fetched, command.data.data());
    } else {
        submit(tag);
    }
}

void
FlashAtlasDrive::submit(uint32_t tag)
{
    Command &command = *inFlight.at(tag);
    const bool keeps = drive.geometry().keeps_bytes;
    try {
        if (keeps && command.command.op == FA_OP_WRITE) {
            command.command.data = command.data.data();
            command.command.data_bytes = command.data.size();
        }
        if (keeps && command.command.op == FA_OP_READ)
            drive.submit(now(), tag, command.command, command.data.data());
        else
            drive.submit(now(), tag, command.command);
    } catch (const flashatlas::Error &error) {
        warn("%s: tag %d: %s", name(), tag, error.what());
        finish(tag, error.code());
        return;
    }
    scheduleNext();
}

void
FlashAtlasDrive::advance()
{
    for (const fa_done &done : drive.advance(now())) {
        const uint32_t tag = done.tag;
        Command &command = *inFlight.at(tag);
        if (command.command.op == FA_OP_READ) {
            auto *stored = new EventFunctionWrapper([this, tag] { finish(tag, FA_SUCCESS); },
                                                    name() + ".stored", true);
            dmaWrite(command.address, command.data.size(), stored, command.data.data());
        } else {
            finish(tag, FA_SUCCESS);
        }
    }
    scheduleNext();
}

void
FlashAtlasDrive::finish(uint32_t tag, int code)
{
    completions.push_back((1ULL << 63) | (uint64_t(tag) << 32) | uint32_t(code));
    inFlight.erase(tag);
    if (inFlight.empty() && drainState() == DrainState::Draining)
        signalDrainDone();
}

void
FlashAtlasDrive::scheduleNext()
{
    const uint64_t at = drive.next_event();
    if (at == FA_NEVER) {
        if (nextEvent.scheduled())
            deschedule(nextEvent);
    } else {
        reschedule(nextEvent, std::max<Tick>(at, curTick()), true);
    }
}

DrainState
FlashAtlasDrive::drain()
{
    return inFlight.empty() ? DrainState::Drained : DrainState::Draining;
}

void
FlashAtlasDrive::serialize(CheckpointOut &) const
{
    fatal("%s: the state of the drive cannot be put into a checkpoint", name());
}

void
FlashAtlasDrive::writeRecord() const
{
    OutputStream *out = simout.create(recordFile);
    *out->stream() << drive.record() << std::endl;
    simout.close(out);
}

} // namespace gem5
