// The serial bridge, alone (stream of bytes) or behind its UART (HOTLINE_DIVISOR cycles a bit), with
// the memory model of the package on its AXI4 master and a register file on its AXI4-Lite master.

#include "Vbridge.h"
#include "axi_memory.hpp"
#include "verilated.h"

using hotline::AxiMemory;
using hotline::SlaveSide;

namespace {

constexpr uint32_t kRegisters = 1024;
constexpr uint32_t kSlaveError = 0x800, kDecodeError = 0xC00;  // offsets from which on it is one

struct Random {
    uint64_t state;
    uint64_t next() {  // splitmix64
        uint64_t z = (state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    bool chance(double p) { return p > 0 && (next() >> 11) * 0x1p-53 < p; }
};

uint8_t answer(uint32_t offset) {
    return offset >= kDecodeError ? hotline::DECERR
           : offset >= kSlaveError ? hotline::SLVERR : hotline::OKAY;
}

}  // namespace

class Bridge {
  public:
    Bridge(uint32_t data_bytes, uint32_t max_beats, double pause, uint64_t seed)
        : memory(data_bytes, max_beats, 1, 1), data_bytes_(data_bytes), pause_(pause),
          random_{seed} {
        context_.randReset(2);
        context_.randSeed(static_cast<int>(seed & 0x7fffffff) | 1);
        top_ = std::make_unique<Vbridge>(&context_, "bridge");
        top_->clk = 0;
        drive(SlaveSide());
        idle_line();
        reset();
    }

    AxiMemory memory;
    uint32_t registers[kRegisters] = {};
    std::vector<uint32_t> writes;  // offset, value of each register write that was seen
    bool irq = false;

    void reset() {
        memory.clear();
        quiet_ = SlaveSide();
        drive(quiet_);
        aw_ = w_ = b_ = ar_ = r_ = false;
        out_at_ = -1;
        idle_line();
        top_->rst = 1;
        for (int i = 0; i < 4; ++i) clock();
        top_->rst = 0;
        for (int i = 0; i < 40; ++i) cycle(nullptr, 0);
    }

    // Sends `count` bytes, then runs until `wanted` have come back and `tail` cycles more.
    int64_t exchange(const uint8_t* in, uint64_t count, uint64_t wanted, uint64_t tail,
                     uint64_t limit, uint8_t* out, uint64_t room) {
        sent_ = 0;
        received_.clear();
        uint64_t after = 0;
        for (uint64_t i = 0; i < limit; ++i) {
            if (sent_ == count && received_.size() >= wanted && after++ == tail) break;
            cycle(in, count);
            if (!memory.failure.empty()) return -1;
        }
        const uint64_t size = std::min<uint64_t>(room, received_.size());
        std::copy_n(received_.begin(), size, out);
        return static_cast<int64_t>(received_.size());
    }

  private:
    VerilatedContext context_;
    std::unique_ptr<Vbridge> top_;
    const uint32_t data_bytes_;
    const double pause_;
    Random random_;
    SlaveSide quiet_;
    uint64_t sent_ = 0;
    std::vector<uint8_t> received_;
    bool aw_ = false, w_ = false, b_ = false, ar_ = false, r_ = false;
    uint32_t aw_offset_ = 0, w_value_ = 0, ar_offset_ = 0;
    int in_at_ = -1, out_at_ = -1;  // cycle within a character on the line, or -1
    uint8_t out_bits_ = 0;

    void drive(const SlaveSide& out) { hotline::drive(*top_, out, data_bytes_); }

    void clock() {
        top_->clk = 0;
        top_->eval();
        top_->clk = 1;
        top_->eval();
    }

    void cycle(const uint8_t* in, uint64_t count) {
        Vbridge& t = *top_;
        t.irq = irq;
        line_inputs(in, count);
        t.axil_awready = !aw_ && !random_.chance(pause_);
        t.axil_wready = !w_ && !random_.chance(pause_);
        t.axil_arready = !ar_ && !random_.chance(pause_);
        b_ = b_ || (aw_ && w_ && !random_.chance(pause_));
        t.axil_bvalid = b_;
        t.axil_bresp = answer(aw_offset_);
        r_ = r_ || (ar_ && !random_.chance(pause_));
        t.axil_rvalid = r_;
        t.axil_rresp = answer(ar_offset_);
        t.axil_rdata = registers[ar_offset_ / 4];
        t.clk = 0;
        t.eval();
        line_outputs();
        sample_registers();
        memory.sample(hotline::sampled(*top_));
        const SlaveSide& next = memory.drive();
        t.clk = 1;
        t.eval();
        drive(next);
    }

#ifdef HOTLINE_DIVISOR
    void idle_line() { top_->rx = 1; }

    void line_inputs(const uint8_t* in, uint64_t count) {
        if (in_at_ < 0 && sent_ < count && !random_.chance(pause_)) in_at_ = 0;
        if (in_at_ < 0) return;
        const int bit = in_at_ / HOTLINE_DIVISOR;
        top_->rx = bit == 0 ? 0 : bit == 9 ? 1 : in[sent_] >> (bit - 1) & 1;
        if (++in_at_ == 10 * HOTLINE_DIVISOR) {
            in_at_ = -1;
            ++sent_;
        }
    }

    void line_outputs() {
        if (out_at_ < 0 && !top_->tx) out_at_ = 0;
        if (out_at_ < 0) return;
        const int bit = out_at_ / HOTLINE_DIVISOR;
        if (out_at_ % HOTLINE_DIVISOR == HOTLINE_DIVISOR / 2) {
            if (bit >= 1 && bit <= 8) out_bits_ = out_bits_ >> 1 | top_->tx << 7;
            if (bit == 9) {
                if (!top_->tx) memory.fail("no stop bit");
                received_.push_back(out_bits_);
                out_at_ = -2;
            }
        }
        ++out_at_;
    }
#else
    void idle_line() { top_->rx_valid = top_->tx_ready = 0; }

    void line_inputs(const uint8_t* in, uint64_t count) {
        top_->rx_valid = sent_ < count && !random_.chance(pause_);
        if (top_->rx_valid) top_->rx_payload = in[sent_];
        top_->tx_ready = !random_.chance(pause_);
    }

    void line_outputs() {
        sent_ += top_->rx_valid && top_->rx_ready;
        if (top_->rx_valid && !top_->rx_ready) memory.fail("the bridge stalls the line");
        if (top_->tx_valid && top_->tx_ready) received_.push_back(top_->tx_payload);
    }
#endif

    void sample_registers() {
        const Vbridge& t = *top_;
        if (t.axil_awvalid && t.axil_awready) {
            aw_ = true;
            aw_offset_ = t.axil_awaddr;
        }
        if (t.axil_wvalid && t.axil_wready) {
            w_ = true;
            w_value_ = t.axil_wdata;
            if (t.axil_wstrb != 15) memory.fail("a strobe of a register write is missing");
        }
        if (t.axil_bvalid && t.axil_bready) {
            writes.push_back(aw_offset_);
            writes.push_back(w_value_);
            if (answer(aw_offset_) == hotline::OKAY) registers[aw_offset_ / 4] = w_value_;
            aw_ = w_ = b_ = false;
        }
        if (t.axil_arvalid && t.axil_arready) {
            ar_ = true;
            ar_offset_ = t.axil_araddr;
        }
        if (t.axil_rvalid && t.axil_rready) ar_ = r_ = false;
    }
};

extern "C" {

Bridge* bridge_create(uint32_t data_bytes, uint32_t max_beats, double pause, uint64_t seed) {
    return new Bridge(data_bytes, max_beats, pause, seed);
}
void bridge_destroy(Bridge* b) { delete b; }
void bridge_reset(Bridge* b) { b->reset(); }
void bridge_timing(Bridge* b, const hotline::Timing* timing) { b->memory.set_timing(*timing); }
void bridge_regions(Bridge* b, const hotline::Region* regions, uint64_t count) {
    b->memory.regions.assign(regions, regions + count);
}
void bridge_errors(Bridge* b, const hotline::ErrorRange* ranges, uint64_t count) {
    b->memory.errors.assign(ranges, ranges + count);
}
void bridge_irq(Bridge* b, int32_t level) { b->irq = level; }
int64_t bridge_exchange(Bridge* b, const uint8_t* in, uint64_t count, uint64_t wanted,
                        uint64_t tail, uint64_t limit, uint8_t* out, uint64_t room) {
    return b->exchange(in, count, wanted, tail, limit, out, room);
}
uint32_t* bridge_registers(Bridge* b) { return b->registers; }
uint64_t bridge_writes(Bridge* b, uint32_t* out, uint64_t room) {
    const uint64_t size = std::min<uint64_t>(room, b->writes.size());
    std::copy_n(b->writes.begin(), size, out);
    const uint64_t all = b->writes.size();
    b->writes.clear();
    return all;
}
void bridge_statistics(Bridge* b, hotline::Statistics* out) { *out = b->memory.statistics; }
const char* bridge_failure(Bridge* b) { return b->memory.failure.c_str(); }

}  // extern "C"
