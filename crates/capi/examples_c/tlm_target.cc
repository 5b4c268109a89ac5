// A drive behind a TLM-2.0 target socket, for SystemC. It reads and writes whole sectors, in the
// loosely-timed style (b_transport) and in the approximately-timed style (nb_transport, four
// phases). Addresses are bytes. An initiator that tests the socket is below.
//
//     c++ -std=c++17 tlm_target.cc $(pkg-config --cflags --libs flashatlas) -lsystemc -o tlm_target

#include <cstdio>
#include <flashatlas.hpp>
#include <map>
#include <systemc>
#include <tlm>
#include <tlm_utils/peq_with_get.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

namespace fa = flashatlas;

// SystemC's time in picoseconds, for any resolution.
static uint64_t ps_of(const sc_core::sc_time &time) {
  static const uint64_t tick = static_cast<uint64_t>(sc_core::sc_get_time_resolution() /
                                                     sc_core::sc_time(1, sc_core::SC_PS));
  return time.value() * tick;
}

static sc_core::sc_time time_of(uint64_t ps) {
  return sc_core::sc_time(static_cast<double>(ps), sc_core::SC_PS);
}

class DriveTarget : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<DriveTarget> socket;

  SC_HAS_PROCESS(DriveTarget);

  DriveTarget(sc_core::sc_module_name name, fa::Drive made)
      : sc_module(name), socket("socket"), drive_(std::move(made)) {
    socket.register_b_transport(this, &DriveTarget::b_transport);
    socket.register_nb_transport_fw(this, &DriveTarget::nb_transport_fw);
    SC_METHOD(take);
    sensitive << arrivals_.get_event();
    dont_initialize();
    SC_METHOD(advance);
    sensitive << wake_;
    dont_initialize();
    SC_METHOD(respond);
    sensitive << answered_;
    dont_initialize();
  }

  std::string record() const { return drive_.record(); }

 private:
  struct InFlight {
    tlm::tlm_generic_payload *payload;  // of nb_transport
    sc_core::sc_event *complete;        // of b_transport
  };

  // Submits the command of a payload now. On an error the payload gets the response status.
  bool submit(tlm::tlm_generic_payload &payload, const InFlight &of) {
    const uint64_t address = payload.get_address();
    const unsigned length = payload.get_data_length();
    const bool whole = address % FA_SECTOR_BYTES == 0 && length % FA_SECTOR_BYTES == 0;
    if (payload.get_byte_enable_ptr() || payload.get_streaming_width() < length || !whole) {
      payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
      return false;
    }
    const uint64_t lba = address / FA_SECTOR_BYTES;
    const uint32_t sectors = length / FA_SECTOR_BYTES;
    const uint64_t now = ps_of(sc_core::sc_time_stamp());
    try {
      if (payload.is_read()) {
        drive_.submit(now, next_tag_, fa::read(lba, sectors), payload.get_data_ptr());
      } else if (payload.is_write()) {
        drive_.submit(now, next_tag_, fa::write(lba, sectors, payload.get_data_ptr()));
      } else {
        payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
        return false;
      }
    } catch (const fa::Error &error) {
      payload.set_response_status(error.code() == FA_ERR_RANGE
                                      ? tlm::TLM_ADDRESS_ERROR_RESPONSE
                                      : tlm::TLM_GENERIC_ERROR_RESPONSE);
      return false;
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    in_flight_[next_tag_++] = of;
    schedule();
    return true;
  }

  // Handles one event at a time, because others may submit commands after a completion and before
  // the next event.
  void schedule() {
    const uint64_t at = drive_.next_event();
    wake_.cancel();
    if (at == FA_NEVER) return;
    const uint64_t now = ps_of(sc_core::sc_time_stamp());
    wake_.notify(time_of(at > now ? at - now : 0));
  }

  void advance() {
    for (const fa_done &done : drive_.advance(ps_of(sc_core::sc_time_stamp()))) {
      const auto at = in_flight_.find(done.tag);
      const InFlight of = at->second;
      in_flight_.erase(at);
      if (of.complete) of.complete->notify();
      if (of.payload) answer(*of.payload);
    }
    schedule();
  }

  void b_transport(tlm::tlm_generic_payload &payload, sc_core::sc_time &delay) {
    wait(delay);  // the drive needs commands in order of time, so no initiator may be ahead
    delay = sc_core::SC_ZERO_TIME;
    sc_core::sc_event complete;
    // at most `queue_depth` transactions are in flight; the others wait here
    while (in_flight_.size() >= drive_.geometry().queue_depth) wait(freed_);
    if (submit(payload, InFlight{nullptr, &complete})) wait(complete);
    freed_.notify(sc_core::SC_ZERO_TIME);
  }

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                     sc_core::sc_time &delay) {
    if (phase == tlm::BEGIN_REQ) {
      payload.acquire();
      arrivals_.notify(payload, delay);
      return tlm::TLM_ACCEPTED;
    }
    if (phase == tlm::END_RESP) {
      finish(payload);
      return tlm::TLM_COMPLETED;
    }
    SC_REPORT_FATAL(name(), "a phase that a target does not get");
    return tlm::TLM_ACCEPTED;
  }

  // A request of nb_transport is due.
  void take() {
    while (tlm::tlm_generic_payload *payload = arrivals_.get_next_transaction()) {
      tlm::tlm_phase phase = tlm::END_REQ;
      sc_core::sc_time none = sc_core::SC_ZERO_TIME;
      socket->nb_transport_bw(*payload, phase, none);
      if (!submit(*payload, InFlight{payload, nullptr})) answer(*payload);
    }
  }

  // Sends one response at a time, as the base protocol requires.
  void answer(tlm::tlm_generic_payload &payload) {
    answers_.push_back(&payload);
    answered_.notify(sc_core::SC_ZERO_TIME);
  }

  void respond() {
    if (responding_ || answers_.empty()) return;
    responding_ = answers_.front();
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time none = sc_core::SC_ZERO_TIME;
    tlm::tlm_generic_payload &payload = *responding_;
    const tlm::tlm_sync_enum said = socket->nb_transport_bw(payload, phase, none);
    if (said == tlm::TLM_COMPLETED || phase == tlm::END_RESP) finish(payload);
  }

  void finish(tlm::tlm_generic_payload &payload) {
    answers_.erase(answers_.begin());
    responding_ = nullptr;
    payload.release();
    answered_.notify(sc_core::SC_ZERO_TIME);
    freed_.notify(sc_core::SC_ZERO_TIME);
  }

  fa::Drive drive_;
  uint64_t next_tag_ = 0;
  std::map<uint64_t, InFlight> in_flight_;
  std::vector<tlm::tlm_generic_payload *> answers_;
  tlm::tlm_generic_payload *responding_ = nullptr;
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> arrivals_{"arrivals"};
  sc_core::sc_event wake_, freed_, answered_;
};

// The payloads of nb_transport have a reference count. A payload is freed when its last user
// releases it.
class Freed : public tlm::tlm_mm_interface {
 public:
  void free(tlm::tlm_generic_payload *payload) override {
    payload->reset();
    delete payload;
  }
};

class Initiator : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Initiator> socket;

  SC_HAS_PROCESS(Initiator);

  explicit Initiator(sc_core::sc_module_name name) : sc_module(name), socket("socket") {
    socket.register_nb_transport_bw(this, &Initiator::nb_transport_bw);
    SC_THREAD(run);
  }

  unsigned wrong = 0, answered = 0;

 private:
  static constexpr unsigned BYTES = 2048, PAGES = 32;

  tlm::tlm_response_status transport(tlm::tlm_command command, uint64_t address,
                                     std::vector<unsigned char> &data) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(data.data());
    payload.set_data_length(static_cast<unsigned>(data.size()));
    payload.set_streaming_width(static_cast<unsigned>(data.size()));
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    wait(delay);
    return payload.get_response_status();
  }

  void run() {
    for (unsigned page = 0; page < PAGES; page++) {
      std::vector<unsigned char> data(BYTES, static_cast<unsigned char>(page + 1));
      wrong += transport(tlm::TLM_WRITE_COMMAND, page * BYTES, data) != tlm::TLM_OK_RESPONSE;
    }
    std::printf("written_at %s\n", sc_core::sc_time_stamp().to_string().c_str());
    for (unsigned page = 0; page < PAGES; page++) {
      std::vector<unsigned char> data(BYTES);
      transport(tlm::TLM_READ_COMMAND, page * BYTES, data);
      wrong += data != std::vector<unsigned char>(BYTES, static_cast<unsigned char>(page + 1));
    }
    std::vector<unsigned char> data(BYTES);
    const tlm::tlm_response_status beyond =
        transport(tlm::TLM_READ_COMMAND, uint64_t{1} << 40, data);
    tlm::tlm_generic_payload refused;
    refused.set_response_status(beyond);
    std::printf("refused %s\n", refused.get_response_string().c_str());

    // four reads at the same time, each in four phases
    for (unsigned page = 0; page < 4; page++) {
      buffers_[page].assign(BYTES, 0);
      auto *payload = new tlm::tlm_generic_payload(&freed_);
      payload->acquire();
      payload->set_command(tlm::TLM_READ_COMMAND);
      payload->set_address(page * BYTES);
      payload->set_data_ptr(buffers_[page].data());
      payload->set_data_length(BYTES);
      payload->set_streaming_width(BYTES);
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      socket->nb_transport_fw(*payload, phase, delay);
      wait(accepted_);
    }
    while (answered < 4) wait(response_);
    for (unsigned page = 0; page < 4; page++) {
      wrong += buffers_[page] !=
               std::vector<unsigned char>(BYTES, static_cast<unsigned char>(page + 1));
    }
    std::printf("finished_at %s\n", sc_core::sc_time_stamp().to_string().c_str());
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                     sc_core::sc_time &) {
    if (phase == tlm::END_REQ) {
      accepted_.notify(sc_core::SC_ZERO_TIME);
      return tlm::TLM_ACCEPTED;
    }
    wrong += payload.get_response_status() != tlm::TLM_OK_RESPONSE;
    answered++;
    response_.notify(sc_core::SC_ZERO_TIME);
    payload.release();
    return tlm::TLM_COMPLETED;
  }

  std::vector<unsigned char> buffers_[4];
  Freed freed_;
  sc_core::sc_event accepted_, response_;
};

int sc_main(int, char **) {
  sc_core::sc_set_time_resolution(1, sc_core::SC_PS);
  DriveTarget target("drive", fa::Drive("tiny", {"nand.data=ram"}));
  Initiator initiator("initiator");
  initiator.socket.bind(target.socket);
  sc_core::sc_start();
  std::printf("answered %u\n", initiator.answered);
  std::printf("wrong %u\n", initiator.wrong);
  return initiator.wrong != 0 || initiator.answered != 4;
}
