// A power failure of a drive in C++. Flushed data survives, and a refused call is an exception.
//
//     c++ raii.cc $(pkg-config --cflags --libs flashatlas) -o raii && ./raii

#include <cstdio>
#include <flashatlas.hpp>
#include <type_traits>

namespace fa = flashatlas;

static_assert(!std::is_copy_constructible<fa::Drive>::value, "a drive cannot be copied");
static_assert(std::is_nothrow_move_constructible<fa::Drive>::value, "a drive can be moved");

// Submits a command and waits for it. Returns the time at which it was complete.
static uint64_t carry_out(fa::Drive &drive, uint64_t now, const fa_command &command) {
  drive.submit(now, 0, command);
  for (;;) {
    const std::vector<fa_done> done = drive.advance(drive.next_event());
    if (!done.empty()) return done[0].at_ps;
  }
}

// Returns the bytes of a sector, and sets `now` to the time at which the read is complete.
static std::vector<unsigned char> bytes_of(fa::Drive &drive, uint64_t &now, uint64_t lba) {
  std::vector<unsigned char> room(FA_SECTOR_BYTES);
  drive.submit(now, 1, fa::read(lba, 1), room.data());
  now = drive.advance(FA_NEVER).at(0).at_ps;
  return room;
}

int main() try {
  fa::Drive made("tiny", {"nand.data=ram"});
  fa::Drive drive = std::move(made);
  const std::vector<unsigned char> kept(FA_SECTOR_BYTES, 0xAB), lost(FA_SECTOR_BYTES, 0xCD);

  uint64_t now = carry_out(drive, 0, fa::write(4, 1, kept.data()));
  now = carry_out(drive, now, fa::flush());
  now = carry_out(drive, now, fa::write(8, 1, lost.data()));  // only in the write cache
  drive.power_cut(now);
  try {
    drive.submit(now, 2, fa::read(4, 1));
    std::puts("a drive without power took a command");
    return 1;
  } catch (const fa::Error &error) {
    std::printf("refused %d: %s\n", static_cast<int>(error.code()), error.what());
  }
  const uint64_t ready = drive.power_on(now);
  std::printf("mounted in %.1f us\n", static_cast<double>(ready - now) / 1e6);
  now = ready;
  const std::vector<unsigned char> zeros(FA_SECTOR_BYTES, 0);
  const bool is_kept = bytes_of(drive, now, 4) == kept;
  const bool is_lost = bytes_of(drive, now, 8) == zeros;
  drive.check();
  std::printf("flushed %s, in the cache %s\n", is_kept ? "kept" : "LOST",
              is_lost ? "lost" : "KEPT");
  try {
    fa::Drive("tiny", {"ftl.victm=greedy"});
    std::puts("an unknown setting was taken");
    return 1;
  } catch (const fa::Error &error) {
    std::printf("refused %d: %s\n", static_cast<int>(error.code()), error.what());
  }
  return is_kept && is_lost ? 0 : 1;
} catch (const fa::Error &error) {
  std::fprintf(stderr, "%d: %s\n", static_cast<int>(error.code()), error.what());
  return 1;
}
