"""RTL from which yosys infers each mode of the ECP5's block RAM and multiplier that is modelled.

All cases have the same ports, so that one bench drives them: two ports with enable, reset, write
enables, address, data and output.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "PORTS", "Case"]

#: Inputs of every case beside `clk`, and their widths; outputs are `q_a` and `q_b`, 36 bits.
PORTS = {
    "ce_a": 1, "ce_b": 1, "rst_a": 1, "rst_b": 1, "we_a": 4, "we_b": 4,
    "addr_a": 14, "addr_b": 14, "d_a": 36, "d_b": 36,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One module.

    Parameters
    ----------
    name : str
    body : str
        Verilog between the ports and ``endmodule``; assigns `q_a` and `q_b`.
    cell : str
        The type that the netlist must have.
    modes : dict of str to (str or int)
        Parameters that its cells must have.
    wired : str, optional
        Body of a module around the cell, where yosys does not make one.
    """

    name: str
    body: str
    cell: str
    modes: dict[str, str | int]
    wired: str = ""

    def module(self, name: str, body: str = "") -> str:
        """The module, called `name`; or one with the same ports and another body."""
        inputs = ", ".join(
            f"input [{width - 1}:0] {port}" if width > 1 else f"input {port}"
            for port, width in PORTS.items()
        )
        outputs = "output [35:0] q_a, output [35:0] q_b"
        return f"module {name}(input clk, {inputs}, {outputs});\n{body or self.body}\nendmodule\n"


#: Words with initial contents in each of three places.
_FILLED = 16


def _memory(width: int, words: int) -> str:
    return (
        f'(* ram_style = "block" *) reg [{width - 1}:0] mem[0:{words - 1}];\n'
        "integer i;\n"
        # At both ends and in the middle something that shows wrong initial contents; yosys takes
        # minutes for more.
        f"initial for (i = 0; i < {_FILLED}; i = i + 1) begin\n"
        f"mem[i] = (i * 32'h9E3779B1) >> {32 - min(width, 32)};\n"
        f"mem[{words // 2} + i] = (i * 32'h7FEB352D) >> {32 - min(width, 32)};\n"
        f"mem[{words - 1} - i] = (i * 32'h846CA68B) >> {32 - min(width, 32)}; end\n"
    )


def _read(port: str, address: str, width: int, reset: str, *, write: str = "") -> str:
    """An output register of a port; `write` is what a write does with it."""
    q, rst, ce = f"out_{port}", f"rst_{port}", f"ce_{port}"
    sense = f"posedge clk or posedge {rst}" if reset == "async" else "posedge clk"
    body = f"if ({ce}) begin {write} {q} <= mem[{address}]; end"
    if write.startswith("if"):
        body = f"if ({ce}) begin {write} end"
    head = f"if ({rst}) {q} <= 0; else " if reset != "none" else ""
    return f"reg [{width - 1}:0] {q} = 0;\nalways @({sense}) {head}{body}\nassign q_{port} = {q};\n"


def _single(width: int, mode: str, reset: str = "none") -> Case:
    """One port; `mode` says what its output does on a write."""
    bits = {1: 14, 2: 13, 4: 12, 9: 11, 18: 10}[width]
    address = f"addr_a[{bits - 1}:0]"
    # A synchronous reset blocks the access, as in the device.
    free = " && !rst_a" if reset == "sync" else ""
    body = _memory(width, 1 << bits)
    body += f"always @(posedge clk) if (ce_a && we_a[0]{free}) mem[{address}] <= d_a;\n"
    writes = {
        "NORMAL": f"if (!we_a[0]) out_a <= mem[{address}];",
        "WRITETHROUGH": f"if (we_a[0]) out_a <= d_a; else out_a <= mem[{address}];",
        "READBEFOREWRITE": "",
    }
    body += _read("a", address, width, reset, write=writes[mode])
    body += "assign q_b = 0;"
    modes: dict[str, str | int] = {"DATA_WIDTH_A": width, "WRITEMODE_A": mode}
    if reset != "none":
        modes["RESETMODE"] = reset.upper()
    name = f"single_{width}_{mode.lower()}" + ("" if reset == "none" else f"_{reset}")
    return Case(name, body, "DP16KD", modes)


def _bytes(mode: str) -> Case:
    """One port of 18 bits with byte enables."""
    body = _memory(18, 1024)
    for byte in range(2):
        part = f"[{9 * byte + 8}:{9 * byte}]"
        body += f"always @(posedge clk) if (ce_a && we_a[{byte}])"
        body += f" mem[addr_a[9:0]]{part} <= d_a{part};\n"
    write = "if (!(we_a[0] || we_a[1])) out_a <= mem[addr_a[9:0]];" if mode == "NORMAL" else ""
    body += _read("a", "addr_a[9:0]", 18, "none", write=write) + "assign q_b = 0;"
    return Case(f"bytes_{mode.lower()}", body, "DP16KD", {"WRITEMODE_A": mode})


def _double(width: int, mode_a: str, mode_b: str) -> Case:
    """Two ports that read and write; they never write the same word at the same time."""
    bits = {1: 14, 2: 13, 4: 12, 9: 11, 18: 10}[width]
    body = _memory(width, 1 << bits)
    body += f"wire same = addr_a[{bits - 1}:0] == addr_b[{bits - 1}:0];\n"
    # No read of what the other port writes either: the device leaves open what it gives.
    body += "wire go_a = ce_a;\nwire go_b = ce_b && !(same && ce_a);\n"
    for port, mode in (("a", mode_a), ("b", mode_b)):
        address = f"addr_{port}[{bits - 1}:0]"
        body += (
            f"always @(posedge clk) if (go_{port} && we_{port}[0]) mem[{address}] <= d_{port};\n"
        )
        condition = f"go_{port} && !we_{port}[0]" if mode == "NORMAL" else f"go_{port}"
        body += (
            f"reg [{width - 1}:0] out_{port} = 0;\n"
            f"always @(posedge clk) if ({condition}) out_{port} <= mem[{address}];\n"
            f"assign q_{port} = out_{port};\n"
        )
    # Which port of the block is which is up to yosys.
    return Case(f"double_{width}_{mode_a.lower()}_{mode_b.lower()}", body, "DP16KD", {})


def _pseudo(read_width: int, reset: str = "none") -> Case:
    """A write port of 36 bits with byte enables, and a read port of `read_width` bits."""
    parts = 36 // 9
    shift = {36: 0, 18: 1, 9: 2}[read_width]
    count = read_width // 9
    body = _memory(9, 2048)
    for byte in range(parts):
        body += (
            f"always @(posedge clk) if (ce_a && we_a[{byte}])"
            f" mem[{{addr_a[8:0], 2'd{byte}}}] <= d_a[{9 * byte + 8}:{9 * byte}];\n"
        )
    low = {36: "2'd{0}", 18: "1'd{0}"}
    high = 8 + shift
    body += f"reg [{read_width - 1}:0] out_b = 0;\nassign q_b = out_b;\nassign q_a = 0;\n"
    # Nothing is read while it is written.
    body += f"wire go_b = ce_b && !(ce_a && addr_a[8:0] == addr_b[{high}:{shift}]);\n"
    reads = []
    for byte in range(count):
        index = f"addr_b[{high}:0]"
        if count > 1:
            index = f"{{addr_b[{high}:0], {low[read_width].format(byte)}}}"
        reads.append(f"out_b[{9 * byte + 8}:{9 * byte}] <= mem[{index}];")
    sense = "posedge clk or posedge rst_b" if reset == "async" else "posedge clk"
    head = "if (rst_b) out_b <= 0; else " if reset != "none" else ""
    body += f"always @({sense}) {head}if (go_b) begin {' '.join(reads)} end"
    modes: dict[str, str | int] = {"DATA_WIDTH_A": 36, "DATA_WIDTH_B": read_width}
    if reset != "none":
        modes["RESETMODE"] = reset.upper()
    name = f"pseudo_{read_width}" + ("" if reset == "none" else f"_{reset}")
    return Case(name, body, "DP16KD", modes)


def _pdpw() -> Case:
    """PDPW16KD itself, which yosys does not use."""
    body = _memory(36, 512)
    for byte in range(4):
        part = f"[{9 * byte + 8}:{9 * byte}]"
        # The reset blocks both ports of this cell.
        body += f"always @(posedge clk) if (ce_a && !rst_b && we_a[{byte}])"
        body += f" mem[addr_a[8:0]]{part} <= d_a{part};\n"
    body += "wire go_b = ce_b && !(ce_a && addr_a[8:0] == addr_b[8:0]);\n"
    body += "reg [35:0] out_b = 0; assign q_b = out_b; assign q_a = 0;\n"
    body += "always @(posedge clk) if (rst_b) out_b <= 0; else if (go_b) out_b <= mem[addr_b[8:0]];"
    pins = [f".DI{bit}(d_a[{bit}])" for bit in range(36)]
    pins += [f".ADW{bit}(addr_a[{bit}])" for bit in range(9)]
    pins += [f".ADR{bit + 5}(addr_b[{bit}])" for bit in range(9)]
    pins += [f".ADR{bit}(1'b0)" for bit in range(5)]
    pins += [f".BE{bit}(we_a[{bit}])" for bit in range(4)]
    pins += [f".CS{port}{bit}(1'b1)" for port in "WR" for bit in range(3)]
    # The halves of a word of 36 bits come out crossed.
    pins += [f".DO{bit}(q_b[{(bit + 18) % 36}])" for bit in range(36)]
    pins += [".CEW(ce_a)", ".CER(go_b)", ".OCER(1'b1)", ".RST(rst_b)"]
    pins += [".CLKW(clk)", ".CLKR(clk)"]
    wired = (
        "assign q_a = 0; wire go_b = ce_b && !(ce_a && addr_a[8:0] == addr_b[8:0]);\n"
        f'PDPW16KD #(.CSDECODE_W("0b111"), .CSDECODE_R("0b111"){_initial(36, 512)})'
        f" block ({', '.join(pins)});"
    )
    return Case("pdpw", body, "PDPW16KD", {}, wired)


def _initial(width: int, words: int) -> str:
    """What `_memory` puts into a memory, as parameters of a block."""
    bits = 0
    for index in range(_FILLED):
        for factor, place in (
            (0x9E3779B1, index),
            (0x7FEB352D, words // 2 + index),
            (0x846CA68B, words - 1 - index),
        ):
            value = (index * factor & (1 << max(width, 32)) - 1) >> (32 - min(width, 32))
            bits |= value << width * place
    parameters = []
    for number in range(64):
        packed = 0
        for part in range(16):
            packed |= (bits >> 18 * (16 * number + part) & 0x3FFFF) << 20 * part
        parameters.append(f", .INITVAL_{number:02X}(320'h{packed:x})")
    return "".join(parameters)


def _multiply(a: int, b: int, signed: bool) -> Case:
    kind = "signed " if signed else ""
    body = (
        f"wire {kind}[{a - 1}:0] x = d_a; wire {kind}[{b - 1}:0] y = d_b;\n"
        f"reg {kind}[{a + b - 1}:0] product = 0;\n"
        "always @(posedge clk) if (ce_a) product <= x * y;\n"
        "assign q_a = product; assign q_b = product >> 36;"
    )
    name = f"multiply_{a}x{b}" + ("_signed" if signed else "")
    return Case(name, body, "MULT18X18D", {})


_WIDTHS = (1, 2, 4, 9, 18)
_MODES = ("NORMAL", "WRITETHROUGH", "READBEFOREWRITE")

CASES: list[Case] = [
    *(_single(width, mode) for width in _WIDTHS for mode in _MODES),
    _single(9, "READBEFOREWRITE", "sync"),
    _single(18, "NORMAL", "sync"),
    _single(4, "NORMAL", "async"),
    _single(18, "READBEFOREWRITE", "async"),
    _bytes("NORMAL"),
    _bytes("READBEFOREWRITE"),
    *(_double(width, "READBEFOREWRITE", "READBEFOREWRITE") for width in _WIDTHS),
    _double(18, "NORMAL", "READBEFOREWRITE"),
    _double(9, "NORMAL", "NORMAL"),
    _pseudo(36),
    _pseudo(18),
    _pseudo(9),
    _pseudo(36, "sync"),
    _pseudo(36, "async"),
    _pdpw(),
    _multiply(18, 18, False),
    _multiply(18, 18, True),
    _multiply(9, 14, False),
    _multiply(11, 18, True),
    _multiply(24, 24, False),
]
