// AXI4 slave memory for the in-process simulation: the memory model of spec section 9 by default,
// and on demand everything else that AXI4 allows a memory to do to its master.
//
// Reads see the memory as it is when AR is accepted, writes take effect when B is offered: the
// harshest order AXI allows, so a master that does not wait for B reads stale data.
// A burst may run past a region's end to the next 64-byte boundary, as spec section 7 allows reads
// to; what is read there is garbage, and a byte written there gets DECERR.
// Contract per cycle: sample() looks at what the master drives, then drive() decides what the
// memory drives in the next cycle.

#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace hotline {

enum Response : uint8_t { OKAY = 0, SLVERR = 2, DECERR = 3 };

// Mirrors `CTiming` in verilated_library.py.
struct Timing {
    uint32_t read_latency[2];   // least and greatest cycles from AR to the first R beat
    uint32_t write_latency[2];  // from the last W beat to B
    uint32_t reorder;           // bursts of different IDs are answered in any order
    uint32_t interleave;        // R beats of different IDs mix
    double pause[5];            // probability per cycle on AR, R, AW, W, B
    double read_bandwidth;      // R beats per cycle, at most 1
    double write_bandwidth;     // W beats per cycle, at most 1
    uint32_t read_outstanding;  // bursts that are taken before one is answered; 0 for any number
    uint32_t write_outstanding;
    uint64_t seed;
};

// Mirrors `CStatistics` in verilated_library.py.
struct Statistics {
    uint64_t cycles, read_bursts, read_beats, read_stalls, write_bursts, write_beats, write_stalls;
    uint64_t most_reads, most_writes, outside;
};

struct Region {
    uint64_t base, size;
    uint8_t* content;
};

struct ErrorRange {
    uint64_t first, last;
    uint32_t response, reads, writes;
};

struct Request {
    bool valid = false;
    uint64_t addr = 0;
    uint32_t id = 0, len = 0, size = 0, burst = 0;
    bool operator==(const Request& other) const {
        return addr == other.addr && id == other.id && len == other.len && size == other.size &&
               burst == other.burst;
    }
};

struct MasterSide {
    Request ar, aw;
    bool rready, bready;
    bool wvalid, wlast;
    uint64_t wstrb;
    const uint8_t* wdata;
};

struct SlaveSide {
    bool arready = false, awready = false, wready = false;
    bool rvalid = false, rlast = false, bvalid = false;
    uint32_t rid = 0, bid = 0;
    uint8_t rresp = 0, bresp = 0;
    const uint8_t* rdata = nullptr;
};

struct Burst {
    uint32_t id = 0, beats = 0, done = 0;
    uint64_t addr = 0, due = 0;
    uint8_t response = OKAY;
    std::vector<uint8_t> data;
    std::vector<uint64_t> strobes;
};
using BurstPointer = std::unique_ptr<Burst>;

// Pending answers of one direction: in order within an ID.
class Answers {
  public:
    Answers() : by_id_(kIds) {}

    bool empty() const { return count_ == 0; }
    size_t size() const { return count_; }

    void push(BurstPointer burst) {
        order_.push_back(burst->id);
        by_id_[burst->id].push_back(std::move(burst));
        ++count_;
    }

    // ID of a burst that may be answered now, or -1.
    template <class Random>
    int choose(uint64_t now, bool reorder, Random&& below) const {
        if (count_ == 0) return -1;
        if (!reorder) {
            const uint32_t id = order_.front();
            return by_id_[id].front()->due <= now ? static_cast<int>(id) : -1;
        }
        int chosen = -1;
        uint32_t seen = 0;
        for (size_t id = 0; id < by_id_.size(); ++id) {
            if (by_id_[id].empty() || by_id_[id].front()->due > now) continue;
            if (below(++seen) == 0) chosen = static_cast<int>(id);
        }
        return chosen;
    }

    Burst& front(uint32_t id) { return *by_id_[id].front(); }

    BurstPointer pop(uint32_t id) {
        BurstPointer burst = std::move(by_id_[id].front());
        by_id_[id].pop_front();
        order_.erase(std::find(order_.begin(), order_.end(), id));
        --count_;
        return burst;
    }

  private:
    static constexpr size_t kIds = 256;
    std::vector<std::deque<BurstPointer>> by_id_;
    std::deque<uint32_t> order_;
    size_t count_ = 0;
};

class AxiMemory {
  public:
    AxiMemory(uint32_t data_bytes, uint32_t max_beats, uint32_t max_reads, uint32_t max_writes)
        : data_bytes_(data_bytes), max_beats_(max_beats), max_reads_(max_reads),
          max_writes_(max_writes), held_data_(data_bytes) {}

    std::vector<Region> regions;
    std::vector<ErrorRange> errors;
    std::vector<uint64_t> outside;  // start addresses of bursts that lay in no region
    Statistics statistics{};
    std::string failure;  // first violation of the protocol

    void set_timing(const Timing& timing) {
        timing_ = timing;
        random_ = timing.seed * 0x9E3779B97F4A7C15u + 0x1234567;
    }

    bool idle() const {
        return reads_.empty() && writes_.empty() && addressed_.empty() && early_.empty();
    }

    // Everything in flight is gone: the design was reset.
    void clear() {
        reads_ = Answers();
        writes_ = Answers();
        addressed_.clear();
        early_.clear();
        out_ = SlaveSide();
        held_ar_.valid = held_aw_.valid = held_w_ = false;
        current_ = -1;
        read_tokens_ = write_tokens_ = 0;
    }

    void sample(const MasterSide& in) {
        if (take(in.ar, held_ar_, out_.arready, "AR")) accept_read(in.ar);
        statistics.read_stalls += in.ar.valid && !out_.arready;
        if (out_.rvalid && in.rready) finish_read_beat();
        if (take(in.aw, held_aw_, out_.awready, "AW")) accept_write(in.aw);
        sample_data(in);
        statistics.write_stalls += in.wvalid && !out_.wready;
        match_data();
        if (out_.bvalid && in.bready) {
            out_.bvalid = false;
            recycle(writes_.pop(out_.bid));
        }
    }

    const SlaveSide& drive() {
        ++statistics.cycles;
        const uint64_t now = statistics.cycles;
        out_.arready = room(reads_.size(), timing_.read_outstanding) && !paused(0);
        read_tokens_ = std::min(1.0, read_tokens_ + timing_.read_bandwidth);
        if (!out_.rvalid && !reads_.empty() && read_tokens_ > 0.999999 && !paused(1)) {
            offer_read(now);
        }
        const size_t writes = addressed_.size() + writes_.size();
        out_.awready = room(writes, timing_.write_outstanding) && !paused(2);
        write_tokens_ = std::min(1.0, write_tokens_ + timing_.write_bandwidth);
        out_.wready = write_tokens_ > 0.999999 && !paused(3);
        if (!out_.bvalid && !writes_.empty() && !paused(4)) offer_answer(now);
        return out_;
    }

    void fail(const char* format, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
        if (!failure.empty()) return;
        char text[200];
        std::snprintf(text, sizeof text, format, a, b, c);
        failure = "cycle " + std::to_string(statistics.cycles) + ": " + text;
    }

  private:
    const uint32_t data_bytes_, max_beats_, max_reads_, max_writes_;
    Timing timing_{};
    uint64_t random_ = 1;
    SlaveSide out_;
    Answers reads_, writes_;
    std::deque<BurstPointer> addressed_;  // AW seen, W data incomplete
    struct Beat {
        std::vector<uint8_t> data;
        uint64_t strobe;
        bool last;
    };
    std::deque<Beat> early_;  // W beats whose AW has not come yet
    Request held_ar_, held_aw_;
    bool held_w_ = false, held_last_ = false;
    uint64_t held_strobe_ = 0;
    std::vector<uint8_t> held_data_;
    int current_ = -1;  // ID of the burst that R is in the middle of
    double read_tokens_ = 0, write_tokens_ = 0;
    std::vector<BurstPointer> free_;

    uint64_t next_random() {  // splitmix64
        uint64_t z = (random_ += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }

    uint32_t below(uint32_t limit) { return limit > 1 ? next_random() % limit : 0; }

    bool paused(int channel) {
        const double p = timing_.pause[channel];
        return p > 0 && (next_random() >> 11) * 0x1p-53 < p;
    }

    static bool room(size_t flying, uint32_t limit) { return limit == 0 || flying < limit; }

    uint32_t draw(const uint32_t range[2]) { return range[0] + below(range[1] - range[0] + 1); }

    BurstPointer fresh() {
        if (free_.empty()) return std::make_unique<Burst>();
        BurstPointer burst = std::move(free_.back());
        free_.pop_back();
        burst->data.clear();
        burst->strobes.clear();
        burst->done = 0;
        return burst;
    }

    void recycle(BurstPointer burst) { free_.push_back(std::move(burst)); }

    // Host memory behind a burst: the first `held` bytes of it, the rest is a region's tail.
    struct Span {
        uint8_t* content = nullptr;
        uint64_t held = 0;
    };

    Span find(uint64_t addr, uint64_t size) const {
        for (const Region& region : regions) {
            const uint64_t offset = addr - region.base;
            if (addr >= region.base && offset < region.size && size <= region.size - offset) {
                return {region.content + offset, size};
            }
        }
        for (const Region& region : regions) {
            const uint64_t offset = addr - region.base;
            const uint64_t end = (region.base + region.size + 63) / 64 * 64 - region.base;
            if (addr >= region.base && offset < end && size <= end - offset) {
                return {region.content + offset,
                        region.size > offset ? region.size - offset : uint64_t{0}};
            }
        }
        return {};
    }

    uint8_t respond(uint64_t addr, uint64_t size, bool write) {
        for (const ErrorRange& range : errors) {
            const bool wanted = write ? range.writes : range.reads;
            if (wanted && addr <= range.last && range.first <= addr + (size - 1)) {
                return static_cast<uint8_t>(range.response);
            }
        }
        return find(addr, size).content ? uint8_t{OKAY} : stray(addr);
    }

    uint8_t stray(uint64_t addr) {
        ++statistics.outside;
        if (outside.size() < 1024) outside.push_back(addr);
        return DECERR;
    }

    bool take(const Request& now, Request& held, bool ready, const char* channel) {
        const bool is_read = channel[1] == 'R';
        if (!now.valid) {
            if (held.valid) fail(is_read ? "ARVALID fell without a transfer"
                                         : "AWVALID fell without a transfer");
            held.valid = false;
            return false;
        }
        if (held.valid && !(held == now)) {
            fail(is_read ? "AR changed while waiting, address %#" PRIx64
                         : "AW changed while waiting, address %#" PRIx64, now.addr);
        }
        held = now;
        held.valid = !ready;
        if (ready) check(now, is_read);
        return ready;
    }

    void check(const Request& request, bool is_read) {
        const uint64_t beats = request.len + 1, bytes = beats * data_bytes_;
        const char* problem = nullptr;
        if ((1u << request.size) != data_bytes_) problem = "size is not the bus width";
        else if (request.burst != 1) problem = "burst type is not INCR";
        else if (request.addr % data_bytes_) problem = "not aligned to the bus";
        else if (beats > max_beats_) problem = "longer than max_burst_beats";
        else if (request.addr >> 12 != (request.addr + bytes - 1) >> 12)
            problem = "crosses a 4 KiB boundary";
        if (!problem) return;
        const std::string text = std::string(is_read ? "AR" : "AW") +
                                 " at %#" PRIx64 " with %" PRIu64 " beats: " + problem;
        fail(text.c_str(), request.addr, beats);
    }

    void accept_read(const Request& request) {
        BurstPointer burst = fresh();
        burst->id = request.id;
        burst->addr = request.addr;
        burst->beats = request.len + 1;
        burst->due = statistics.cycles + draw(timing_.read_latency);
        const uint64_t size = uint64_t{burst->beats} * data_bytes_;
        burst->response = respond(request.addr, size, false);
        const Span source = burst->response == OKAY ? find(request.addr, size) : Span();
        if (source.held) burst->data.assign(source.content, source.content + source.held);
        // What comes with an error or from a tail is garbage, and different each time.
        while (burst->data.size() < size) {
            burst->data.push_back(static_cast<uint8_t>(next_random()));
        }
        reads_.push(std::move(burst));
        ++statistics.read_bursts;
        statistics.most_reads = std::max<uint64_t>(statistics.most_reads, reads_.size());
        if (reads_.size() > max_reads_) fail("%" PRIu64 " reads in flight", reads_.size());
    }

    void offer_read(uint64_t now) {
        const auto random = [this](uint32_t limit) { return below(limit); };
        if (current_ < 0 || timing_.interleave) {
            current_ = reads_.choose(now, timing_.reorder || timing_.interleave, random);
        }
        if (current_ < 0) return;
        const Burst& burst = reads_.front(current_);
        out_.rvalid = true;
        out_.rid = burst.id;
        out_.rresp = burst.response;
        out_.rdata = burst.data.data() + uint64_t{burst.done} * data_bytes_;
        out_.rlast = burst.done + 1 == burst.beats;
        read_tokens_ -= 1;
    }

    void finish_read_beat() {
        out_.rvalid = false;
        ++statistics.read_beats;
        ++reads_.front(out_.rid).done;
        if (out_.rlast) {
            recycle(reads_.pop(out_.rid));
            current_ = -1;
        }
    }

    void accept_write(const Request& request) {
        BurstPointer burst = fresh();
        burst->id = request.id;
        burst->addr = request.addr;
        burst->beats = request.len + 1;
        burst->response = respond(request.addr, uint64_t{burst->beats} * data_bytes_, true);
        addressed_.push_back(std::move(burst));
        ++statistics.write_bursts;
        const uint64_t flying = addressed_.size() + writes_.size();
        statistics.most_writes = std::max(statistics.most_writes, flying);
        if (flying > max_writes_) fail("%" PRIu64 " writes in flight", flying);
    }

    void sample_data(const MasterSide& in) {
        if (!in.wvalid) {
            if (held_w_) fail("WVALID fell without a transfer");
            held_w_ = false;
            return;
        }
        if (held_w_ && (held_strobe_ != in.wstrb || held_last_ != in.wlast ||
                        std::memcmp(held_data_.data(), in.wdata, data_bytes_))) {
            fail("W changed while waiting");
        }
        held_w_ = !out_.wready;
        if (held_w_) {
            held_strobe_ = in.wstrb;
            held_last_ = in.wlast;
            std::memcpy(held_data_.data(), in.wdata, data_bytes_);
            return;
        }
        ++statistics.write_beats;
        write_tokens_ -= 1;
        if (!addressed_.empty() && early_.empty()) {
            add_beat(in.wdata, in.wstrb, in.wlast);
        } else {
            early_.push_back({{in.wdata, in.wdata + data_bytes_}, in.wstrb, in.wlast});
        }
    }

    void match_data() {
        while (!early_.empty() && !addressed_.empty()) {
            const Beat beat = std::move(early_.front());
            early_.pop_front();
            add_beat(beat.data.data(), beat.strobe, beat.last);
        }
    }

    void add_beat(const uint8_t* data, uint64_t strobe, bool last) {
        Burst& burst = *addressed_.front();
        burst.data.insert(burst.data.end(), data, data + data_bytes_);
        burst.strobes.push_back(strobe);
        const bool complete = ++burst.done == burst.beats;
        if (last != complete) {
            fail("WLAST is wrong at beat %" PRIu64 " of %" PRIu64 ", burst at %#" PRIx64,
                 burst.done, burst.beats, burst.addr);
        }
        if (!complete) return;
        if (burst.response == OKAY && beyond(burst)) burst.response = stray(burst.addr);
        burst.due = statistics.cycles + draw(timing_.write_latency);
        writes_.push(std::move(addressed_.front()));
        addressed_.pop_front();
    }

    void offer_answer(uint64_t now) {
        const auto random = [this](uint32_t limit) { return below(limit); };
        const int id = writes_.choose(now, timing_.reorder, random);
        if (id < 0) return;
        const Burst& burst = writes_.front(id);
        out_.bvalid = true;
        out_.bid = burst.id;
        out_.bresp = burst.response;
        if (burst.response == OKAY) store(burst);
    }

    // Whether a byte of the burst would be written past the end of its region.
    bool beyond(const Burst& burst) const {
        const uint64_t held = find(burst.addr, uint64_t{burst.beats} * data_bytes_).held;
        for (uint64_t beat = held / data_bytes_; beat < burst.beats; ++beat) {
            const uint64_t first = beat * data_bytes_;
            const uint64_t inside = held > first ? held - first : 0;
            if (burst.strobes[beat] >> inside) return true;
        }
        return false;
    }

    void store(const Burst& burst) {
        uint8_t* target = find(burst.addr, uint64_t{burst.beats} * data_bytes_).content;
        const uint64_t all = data_bytes_ == 64 ? ~uint64_t{0} : (uint64_t{1} << data_bytes_) - 1;
        const uint8_t* source = burst.data.data();
        for (const uint64_t strobe : burst.strobes) {
            if (strobe == all) {
                std::memcpy(target, source, data_bytes_);
            } else {
                for (uint32_t byte = 0; byte < data_bytes_; ++byte) {
                    if (strobe >> byte & 1) target[byte] = source[byte];
                }
            }
            target += data_bytes_;
            source += data_bytes_;
        }
    }
};

// ---- a Verilated top with the ports m_axi_* -----------------------------------------------------

template <class Top> MasterSide sampled(const Top& top) {
    MasterSide in;
    in.ar.valid = top.m_axi_arvalid;
    if (in.ar.valid) {
        in.ar = {true, top.m_axi_araddr, top.m_axi_arid, top.m_axi_arlen, top.m_axi_arsize,
                 top.m_axi_arburst};
    }
    in.aw.valid = top.m_axi_awvalid;
    if (in.aw.valid) {
        in.aw = {true, top.m_axi_awaddr, top.m_axi_awid, top.m_axi_awlen, top.m_axi_awsize,
                 top.m_axi_awburst};
    }
    in.rready = top.m_axi_rready;
    in.bready = top.m_axi_bready;
    in.wvalid = top.m_axi_wvalid;
    in.wlast = top.m_axi_wlast;
    in.wstrb = top.m_axi_wstrb;
    // Verilated ports are little-endian words on every host this runs on.
    in.wdata = reinterpret_cast<const uint8_t*>(&top.m_axi_wdata);
    return in;
}

template <class Top> void drive(Top& top, const SlaveSide& out, uint32_t data_bytes) {
    top.m_axi_arready = out.arready;
    top.m_axi_awready = out.awready;
    top.m_axi_wready = out.wready;
    top.m_axi_rvalid = out.rvalid;
    if (out.rvalid) {
        top.m_axi_rid = out.rid;
        top.m_axi_rresp = out.rresp;
        top.m_axi_rlast = out.rlast;
        std::memcpy(&top.m_axi_rdata, out.rdata, data_bytes);
    }
    top.m_axi_bvalid = out.bvalid;
    if (out.bvalid) {
        top.m_axi_bid = out.bid;
        top.m_axi_bresp = out.bresp;
    }
}

}  // namespace hotline
