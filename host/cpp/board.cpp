// A Verilated board with a serial line: bytes in, bytes out, bit by bit on its pins, behind a C
// interface for ctypes. One thread; errors come back as text.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "Vboard.h"
#include "verilated.h"

namespace {

constexpr int kResetCycles = 16;
// In bits: start, data, stop.
constexpr int kCharacter = 10;

}  // namespace

class Board {
  public:
    explicit Board(uint32_t divisor) : divisor_(static_cast<int>(divisor)) {
        context_.randReset(0);
        top_ = std::make_unique<Vboard>(&context_, "board");
        top_->serial_rx = 1;
        top_->clk = 0;
        top_->rst = 1;
        top_->eval();
        for (int i = 0; i < kResetCycles; ++i) clock();
        top_->rst = 0;
    }

    ~Board() { top_->final(); }

    uint64_t cycles = 0;
    std::string failure;

    // Runs until `limit` cycles have passed, or until all is sent and the board, having sent
    // something, has been silent for the time of two characters. What does not fit into `out` is
    // kept for the next call.
    void run(const uint8_t* in, uint64_t count, uint64_t limit) {
        uint64_t next = 0;
        int silent = 0;
        for (uint64_t i = 0; i < limit || next < count || in_at_ >= 0; ++i) {
            if (in_at_ < 0 && next < count) {
                in_at_ = 0;
                in_bits_ = in[next++] << 1 | 1 << (kCharacter - 1);
            }
            if (in_at_ >= 0) {
                top_->serial_rx = in_bits_ >> (in_at_ / divisor_) & 1;
                if (++in_at_ == kCharacter * divisor_) in_at_ = -1;
            }
            clock();
            if (sample()) silent = 0;
            if (!out.empty() && next == count && in_at_ < 0 &&
                ++silent == 2 * kCharacter * divisor_)
                break;
            if (!failure.empty()) break;
        }
    }

    std::vector<uint8_t> out;

  private:
    VerilatedContext context_;
    std::unique_ptr<Vboard> top_;
    const int divisor_;
    int in_at_ = -1, out_at_ = -1;  // cycle within a character, or -1
    uint32_t in_bits_ = 0, out_bits_ = 0;

    void clock() {
        top_->clk = 1;
        top_->eval();
        top_->clk = 0;
        top_->eval();
        ++cycles;
    }

    // Looks at the board's line; whether a character is under way.
    bool sample() {
        if (top_->violation && failure.empty()) {
            failure = "cycle " + std::to_string(cycles) + ": the SDRAM was used wrongly";
        }
        if (out_at_ < 0) {
            if (top_->serial_tx) return false;
            out_at_ = 0;
            out_bits_ = 0;
        }
        if (out_at_ % divisor_ == divisor_ / 2) {
            out_bits_ |= static_cast<uint32_t>(top_->serial_tx) << (out_at_ / divisor_);
            if (out_at_ / divisor_ == kCharacter - 1) {
                if (out_bits_ & 1 || !(out_bits_ >> (kCharacter - 1))) {
                    failure = "cycle " + std::to_string(cycles) + ": no start or no stop bit";
                }
                out.push_back(static_cast<uint8_t>(out_bits_ >> 1));
                // The rest of the stop bit is high, as is the line when idle.
                out_at_ = -2;
            }
        }
        ++out_at_;
        return true;
    }
};

extern "C" {

Board* board_create(uint32_t divisor) { return new Board(divisor); }

void board_destroy(Board* b) { delete b; }

void board_run(Board* b, const uint8_t* in, uint64_t count, uint64_t limit) {
    b->run(in, count, limit);
}

uint64_t board_take(Board* b, uint8_t* out, uint64_t room) {
    const uint64_t size = std::min<uint64_t>(room, b->out.size());
    std::copy_n(b->out.begin(), size, out);
    b->out.erase(b->out.begin(), b->out.begin() + static_cast<std::ptrdiff_t>(size));
    return size;
}

uint64_t board_cycles(Board* b) { return b->cycles; }

const char* board_failure(Board* b) { return b->failure.c_str(); }

}  // extern "C"
