// The Verilated top with a clock, a memory on its AXI4 master and a master on its registers,
// behind a C interface for ctypes. One thread; errors come back as text, never as exceptions.
//
// The inputs of the model go through registers of its wrapper (clocked_top.py): what is set here
// reaches the design at the next rising edge, and after that edge all outputs of the cycle are
// settled. So logic is evaluated once a cycle, not once for each change of an input.

#include "Vhotline.h"
#include "axi_memory.hpp"
#include "verilated.h"
#if HOTLINE_WAVES == 1
#include "verilated_vcd_c.h"
using Waves = VerilatedVcdC;
#elif HOTLINE_WAVES == 2
#include "verilated_fst_c.h"
using Waves = VerilatedFstC;
#endif

using hotline::AxiMemory;
using hotline::SlaveSide;

namespace {

constexpr uint32_t kRegisterTimeout = 100000;  // cycles without an answer on AXI4-Lite
constexpr uint32_t kStatusInterval = 64;       // cycles between two reads when polling
constexpr uint64_t kPeriodPs = 10000;          // for the waveform's time axis only

enum Outcome : int32_t { DONE = 0, TIMEOUT = 1, FAILED = -1 };

}  // namespace

class Simulation {
  public:
    Simulation(uint32_t data_bytes, uint32_t max_beats, uint32_t max_reads, uint32_t max_writes,
               uint64_t seed, int32_t random_state)
        : memory(data_bytes, max_beats, max_reads, max_writes), data_bytes_(data_bytes) {
        context_.randReset(random_state ? 2 : 0);
        context_.randSeed(static_cast<int>(seed & 0x7fffffff) | 1);
        context_.traceEverOn(HOTLINE_WAVES);
        top_ = std::make_unique<Vhotline>(&context_, "hotline");
        quiet_registers();
        drive(SlaveSide());
        top_->aresetn = 0;
        top_->aclk = 0;
        top_->eval();
    }

    ~Simulation() {
        close_waves();
        top_->final();
    }

    AxiMemory memory;

    bool open_waves(const char* path) {
#if HOTLINE_WAVES
        if (!waves_) {
            waves_ = std::make_unique<Waves>();
            top_->trace(waves_.get(), 99);
        } else if (waves_->isOpen()) {
            waves_->close();
        }
        waves_->open(path);
        return waves_->isOpen();
#else
        (void)path;
        return false;
#endif
    }

    void close_waves() {
#if HOTLINE_WAVES
        if (waves_ && waves_->isOpen()) waves_->close();
#endif
    }

    void reset(uint32_t cycles) {
        top_->aresetn = 0;
        quiet_registers();
        memory.clear();
        drive(SlaveSide());
        // One more, because the design sees its reset a cycle late.
        for (uint32_t i = 0; i <= cycles; ++i) edge(false);
        if (any_valid()) memory.fail("a VALID is high during reset");
        top_->aresetn = 1;
        edge(false);
        if (any_valid()) memory.fail("a VALID is high after reset");
    }

    // Until `limit` cycles have passed, or `irq` is high, or the 32-bit word at `flag` is not 0.
    int32_t run(uint64_t limit, bool until_irq, const volatile uint32_t* flag) {
        const auto reached = [&] { return (until_irq && top_->irq) || (flag && *flag); };
        for (uint64_t i = 0; i < limit; ++i) {
            if (reached()) return DONE;
            edge(true);
            if (!memory.failure.empty()) return FAILED;
        }
        return (until_irq || flag) && !reached() ? TIMEOUT : DONE;
    }

    int32_t poll(uint32_t offset, uint32_t mask, uint32_t value, uint64_t limit) {
        const uint64_t end = memory.statistics.cycles + limit;
        while (true) {
            uint32_t word = 0, response = 0;
            if (read_register(offset, &word, &response) != DONE) return FAILED;
            if (response) {
                memory.fail("response %" PRIu64 " to a read of register %#" PRIx64, response,
                            offset);
                return FAILED;
            }
            if ((word & mask) == value) return DONE;
            if (memory.statistics.cycles >= end) return TIMEOUT;
            if (run(kStatusInterval, false, nullptr) != DONE) return FAILED;
        }
    }

    int32_t write_register(uint32_t offset, uint32_t value, uint32_t strobe, uint32_t* response) {
        top_->s_axil_awaddr = offset;
        top_->s_axil_awvalid = 1;
        top_->s_axil_wdata = value;
        top_->s_axil_wstrb = strobe;
        top_->s_axil_wvalid = 1;
        top_->s_axil_bready = 1;
        bool aw = true, w = true;  // valid in this cycle
        edge(true);
        for (uint32_t i = 0; i < kRegisterTimeout; ++i) {
            aw = aw && !top_->s_axil_awready;
            w = w && !top_->s_axil_wready;
            const bool b = top_->s_axil_bvalid;
            *response = top_->s_axil_bresp;
            top_->s_axil_awvalid = aw;
            top_->s_axil_wvalid = w;
            if (b) quiet_registers();
            edge(true);
            if (b) {
                if (aw || w) memory.fail("B on AXI4-Lite before AW and W were taken");
                return memory.failure.empty() ? DONE : FAILED;
            }
        }
        memory.fail("no answer to a write of register %#" PRIx64, offset);
        quiet_registers();
        return FAILED;
    }

    int32_t read_register(uint32_t offset, uint32_t* value, uint32_t* response) {
        top_->s_axil_araddr = offset;
        top_->s_axil_arvalid = 1;
        top_->s_axil_rready = 1;
        bool ar = true;  // valid in this cycle
        edge(true);
        for (uint32_t i = 0; i < kRegisterTimeout; ++i) {
            ar = ar && !top_->s_axil_arready;
            const bool r = top_->s_axil_rvalid;
            *value = top_->s_axil_rdata;
            *response = top_->s_axil_rresp;
            top_->s_axil_arvalid = ar;
            if (r) quiet_registers();
            edge(true);
            if (r) {
                if (ar) memory.fail("R on AXI4-Lite before AR was taken");
                return memory.failure.empty() ? DONE : FAILED;
            }
        }
        memory.fail("no answer to a read of register %#" PRIx64, offset);
        quiet_registers();
        return FAILED;
    }

    bool irq() const { return top_->irq; }

  private:
    VerilatedContext context_;
    std::unique_ptr<Vhotline> top_;
    const uint32_t data_bytes_;
    uint64_t time_ = 0;
#if HOTLINE_WAVES
    std::unique_ptr<Waves> waves_;
#endif

    void quiet_registers() {
        top_->s_axil_awvalid = top_->s_axil_wvalid = top_->s_axil_arvalid = 0;
        top_->s_axil_bready = top_->s_axil_rready = 0;
        top_->s_axil_awprot = top_->s_axil_arprot = 0;
        top_->s_axil_wstrb = 0;
    }

    bool any_valid() const {
        return top_->m_axi_arvalid || top_->m_axi_awvalid || top_->m_axi_wvalid ||
               top_->s_axil_bvalid || top_->s_axil_rvalid;
    }

    void dump(uint64_t offset) {
#if HOTLINE_WAVES
        if (waves_ && waves_->isOpen()) waves_->dump(time_ * kPeriodPs + offset);
#else
        (void)offset;
#endif
    }

    void drive(const SlaveSide& out) { hotline::drive(*top_, out, data_bytes_); }

    // Finish the current cycle: decide what its outputs make of the next one's inputs, and go there
    // with a rising edge.
    void edge(bool traffic) {
        if (traffic) {
            memory.sample(hotline::sampled(*top_));
            drive(memory.drive());
        } else {
            ++memory.statistics.cycles;
        }
        top_->aclk = 0;
        top_->eval();
        dump(kPeriodPs / 2);
        top_->aclk = 1;
        top_->eval();
        ++time_;
        dump(0);
    }
};

extern "C" {

Simulation* hotline_create(uint32_t data_bytes, uint32_t max_beats, uint32_t max_reads,
                           uint32_t max_writes, uint64_t seed, int32_t random_state) {
    return new Simulation(data_bytes, max_beats, max_reads, max_writes, seed, random_state);
}

void hotline_destroy(Simulation* s) { delete s; }

int32_t hotline_waves(Simulation* s, const char* path) { return s->open_waves(path) ? 0 : -1; }

void hotline_timing(Simulation* s, const hotline::Timing* timing) { s->memory.set_timing(*timing); }

void hotline_regions(Simulation* s, const hotline::Region* regions, uint64_t count) {
    s->memory.regions.assign(regions, regions + count);
}

void hotline_errors(Simulation* s, const hotline::ErrorRange* ranges, uint64_t count) {
    s->memory.errors.assign(ranges, ranges + count);
}

void hotline_reset(Simulation* s, uint32_t cycles) { s->reset(cycles); }

void hotline_end_waves(Simulation* s) { s->close_waves(); }

int32_t hotline_run(Simulation* s, uint64_t limit, int32_t until_irq, const uint32_t* flag) {
    return s->run(limit, until_irq != 0, flag);
}

int32_t hotline_poll(Simulation* s, uint32_t offset, uint32_t mask, uint32_t value,
                     uint64_t limit) {
    return s->poll(offset, mask, value, limit);
}

int32_t hotline_write(Simulation* s, uint32_t offset, uint32_t value, uint32_t strobe,
                      uint32_t* response) {
    return s->write_register(offset, value, strobe, response);
}

int32_t hotline_read(Simulation* s, uint32_t offset, uint32_t* value, uint32_t* response) {
    return s->read_register(offset, value, response);
}

int32_t hotline_irq(Simulation* s) { return s->irq(); }

int32_t hotline_bus_idle(Simulation* s) { return s->memory.idle(); }

void hotline_statistics(Simulation* s, hotline::Statistics* out) { *out = s->memory.statistics; }

uint64_t hotline_outside(Simulation* s, uint64_t* addresses, uint64_t room) {
    const auto& list = s->memory.outside;
    const uint64_t count = std::min<uint64_t>(room, list.size());
    std::copy_n(list.begin(), count, addresses);
    return count;
}

const char* hotline_failure(Simulation* s) { return s->memory.failure.c_str(); }

}  // extern "C"
