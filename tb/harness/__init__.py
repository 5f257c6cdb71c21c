"""Shared parts of the cocotb benches.

A bench of two files, the pytest side and the cocotb side::

    # test_dedup.py                                  # cocotb_dedup.py
    def test_dedup() -> None:                        @cocotb.test
        run_bench(Dedup(config), "dedup",            async def keys(dut):
                  "cocotb_dedup", config=config)         bench = Bench(dut)
                                                         source = StreamSource(bench, "i", layout)
                                                         sink = StreamSink(bench, "o", layout)
                                                         await bench.start()
                                                         source.send_all(items)
                                                         assert await sink.receive(9) == expected

* `build`: component to simulation, ``run_bench``.
* `bench`: clock, reset, the two points of a cycle (drive, sample).
* `streams`, `layouts`: stream agents, payloads as Python data.
* `axi_memory`, `axi_port`, `axi_lite`: bus models.
* `cocotb_backend`: the driver's back-end for the top in cocotb, cocotbext-axi as a peer.
* `vectors`: millions of rows through a small design, without Python in the loop.
* `pair`, `traffic`: the whole device against the golden model.
"""
