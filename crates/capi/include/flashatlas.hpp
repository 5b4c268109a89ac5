/*
 * libflashatlas for C++11. A drive is an object that can be moved but not copied, and errors are
 * exceptions. This header wraps flashatlas.h and needs no other file.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef FLASHATLAS_HPP
#define FLASHATLAS_HPP

#include "flashatlas.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace flashatlas {

// The code and the text of a call that did not return FA_SUCCESS.
class Error : public std::runtime_error {
 public:
  Error(fa_code code, const std::string &what) : std::runtime_error(what), code_(code) {}
  fa_code code() const noexcept { return code_; }

 private:
  fa_code code_;
};

// A command whose other fields are zero. The functions below make a command of each kind.
inline fa_command command(fa_op op, uint64_t lba, uint32_t sectors) {
  fa_command made;
  std::memset(&made, 0, sizeof made);
  made.op = static_cast<uint32_t>(op);
  made.lba = lba;
  made.sectors = sectors;
  return made;
}

inline fa_command read(uint64_t lba, uint32_t sectors) {
  return command(FA_OP_READ, lba, sectors);
}

// `data` points to the bytes of the sectors if the drive stores bytes, and is null otherwise.
inline fa_command write(uint64_t lba, uint32_t sectors, const void *data = nullptr,
                        bool fua = false) {
  fa_command made = command(FA_OP_WRITE, lba, sectors);
  made.data = data;
  made.data_bytes = data ? size_t{sectors} * FA_SECTOR_BYTES : 0;
  made.fua = fua;
  return made;
}

inline fa_command flush() { return command(FA_OP_FLUSH, 0, 0); }

inline fa_command trim(uint64_t lba, uint32_t sectors) {
  return command(FA_OP_TRIM, lba, sectors);
}

// A drive. Members throw Error if a call fails. Times are picoseconds.
class Drive {
 public:
  // Makes a built-in drive, with settings of the form key=value.
  explicit Drive(const std::string &preset, const std::vector<std::string> &settings = {},
                 uint64_t seed = 1)
      : drive_(create(preset.c_str(), nullptr, settings, seed)) {}

  // Makes a drive from the text of a drive file. Messages use `name` for it.
  static Drive from_toml(const std::string &toml, const std::vector<std::string> &settings = {},
                         uint64_t seed = 1, const std::string &name = "drive.toml") {
    return Drive(create(name.c_str(), toml.c_str(), settings, seed));
  }

  Drive(const Drive &) = delete;
  Drive &operator=(const Drive &) = delete;
  Drive(Drive &&other) noexcept : drive_(other.drive_) { other.drive_ = nullptr; }
  Drive &operator=(Drive &&other) noexcept {
    std::swap(drive_, other.drive_);
    return *this;
  }
  ~Drive() { fa_drive_free(drive_); }

  fa_geometry geometry() const {
    fa_geometry found;
    check(fa_drive_geometry(drive_, &found));
    return found;
  }

  void submit(uint64_t now_ps, uint64_t tag, const fa_command &command) {
    check(fa_submit(drive_, now_ps, tag, &command, nullptr));
  }

  // Submits a read of bytes. `room` has space for the bytes of the sectors. The bytes are there
  // when the call returns, but a host that models time must not use them before the command is
  // complete.
  void submit(uint64_t now_ps, uint64_t tag, const fa_command &command, void *room) {
    fa_reply reply;
    std::memset(&reply, 0, sizeof reply);
    reply.data = room;
    reply.data_room = size_t{command.sectors} * FA_SECTOR_BYTES;
    check(fa_submit(drive_, now_ps, tag, &command, &reply));
  }

  void submit(uint64_t now_ps, uint64_t tag, const fa_command &command, fa_reply &reply) {
    check(fa_submit(drive_, now_ps, tag, &command, &reply));
  }

  // Returns the time of the next event, or FA_NEVER if there is none.
  uint64_t next_event() const {
    uint64_t at = FA_NEVER;
    check(fa_next_event(drive_, &at));
    return at;
  }

  // Handles all events up to `until_ps`. Returns the complete commands, in order of time.
  std::vector<fa_done> advance(uint64_t until_ps) {
    std::vector<fa_done> done;
    fa_done some[64];
    size_t count = 0;
    do {
      check(fa_advance(drive_, until_ps, some, 64, &count));
      done.insert(done.end(), some, some + count);
    } while (count == 64);
    return done;
  }

  void idle(uint64_t now_ps, uint64_t until_ps) { check(fa_idle(drive_, now_ps, until_ps)); }
  void fill() { check(fa_fill(drive_)); }
  void save(const std::string &path) { check(fa_checkpoint_save(drive_, path.c_str())); }
  void load(const std::string &path) { check(fa_checkpoint_load(drive_, path.c_str())); }
  void power_cut(uint64_t now_ps) { check(fa_power_cut(drive_, now_ps)); }
  void power_cut_after(uint64_t operations) { check(fa_power_cut_after(drive_, operations)); }

  // Returns the time from which on the drive accepts commands.
  uint64_t power_on(uint64_t now_ps) {
    uint64_t ready = 0;
    check(fa_power_on(drive_, now_ps, &ready));
    return ready;
  }

  bool is_on() const noexcept { return fa_is_on(drive_) != 0; }
  void check() const { check(fa_check(drive_)); }
  void reset_counters() { check(fa_reset_counters(drive_)); }

  // Returns counters, write amplification and latencies as a JSON text.
  std::string record() const {
    char *text = nullptr;
    check(fa_record_json(drive_, &text));
    const std::string found(text);
    fa_string_free(text);
    return found;
  }

  // Returns the pointer for calls of the C interface.
  fa_drive *get() const noexcept { return drive_; }

 private:
  explicit Drive(fa_drive *made) : drive_(made) {}

  static fa_drive *create(const char *name, const char *toml,
                          const std::vector<std::string> &settings, uint64_t seed) {
    std::vector<const char *> texts;
    for (const std::string &setting : settings) texts.push_back(setting.c_str());
    char why[1024] = "";
    fa_drive *made =
        fa_drive_create(name, toml, texts.data(), texts.size(), seed, why, sizeof why);
    if (!made) throw Error(FA_ERR_ARGUMENT, why);
    return made;
  }

  void check(int code) const {
    if (code != FA_SUCCESS) throw Error(static_cast<fa_code>(code), fa_drive_error(drive_));
  }

  fa_drive *drive_;
};

}  // namespace flashatlas

#endif
