"""Files with which Vivado and Vitis take up the accelerator: IP packaging and an RTL kernel.

Interfaces are inferred by name: ``m_axi_*`` and ``s_axil_*`` are the names that Vivado looks for. A
Vitis kernel must have other names for clock, reset and interrupt, and 64 address bits on its
master; so a shell goes around the top.
"""

from __future__ import annotations

from xml.etree import ElementTree

from hotline.gen.config import Config
from hotline.gen.netlist import Port
from hotline.gen.register_map import VERSION, Access, register_map

__all__ = ["KERNEL", "vivado_files"]

#: Name of the kernel, and of the shell around the top.
KERNEL = "hotline_kernel"

_VENDOR, _LIBRARY = "hotline", "accelerator"
_REGISTER_BYTES = 0x1000
_KERNEL_ADDRESS_BITS = 64
#: Names that Vitis wants, by ours.
_KERNEL_NAMES = {"aclk": "ap_clk", "aresetn": "ap_rst_n", "irq": "interrupt"}
_KERNEL_SLAVE = "s_axi_control"
#: Registers that hold an address which the device reads or writes at; XRT asks for them as
#: arguments, to know which memories the master must reach.
_KERNEL_POINTER = "RING_BASE"


def vivado_files(config: Config, ports: list[Port]) -> dict[str, str]:
    """Text by file name.

    Parameters
    ----------
    config : Config
        Of the top.
    ports : list of Port
        Of the top, as its Verilog has them.
    """
    return {
        "package_ip.tcl": _package_ip(config),
        "package_kernel.tcl": _package_kernel(config),
        "kernel.xml": _kernel_xml(config),
        f"{KERNEL}.v": _kernel_shell(ports),
    }


def _version() -> str:
    return ".".join(map(str, VERSION[:2]))


def _package(
    config: Config, module: str, sources: str, folder: str, slave: str, pins: tuple[str, str, str]
) -> str:
    """Tcl that packages `module` and leaves the core in ``$core``; `pins` clock, reset, irq."""
    clock, reset, interrupt = pins
    address_bits = _KERNEL_ADDRESS_BITS if module == KERNEL else config.addr_width
    registers = "\n".join(
        f"    {{{register.name} {register.offset:#05x} {_ACCESS[register.access]}}}"
        for register in register_map(config)
    )
    return f"""set here [file dirname [file normalize [info script]]]
create_project -in_memory
add_files -norecurse {sources}
set_property top {module} [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $here/{folder} -vendor {_VENDOR} -library {_LIBRARY} \\
    -taxonomy /UserIP -import_files -set_current true -force
set core [ipx::current_core]
set_property name {module} $core
set_property version {_version()} $core
set_property display_name "Hotline" $core
set_property description "Accelerator for recommendation-model training" $core

# What Vivado has not inferred by name while packaging; what it has is taken as it is.
foreach {{pin kind}} {{
    {clock} clock_rtl
    {reset} reset_rtl
    {interrupt} interrupt_rtl
}} {{
    if {{[llength [ipx::get_bus_interfaces $pin -of_objects $core]] == 0}} {{
        ipx::infer_bus_interface $pin xilinx.com:signal:$kind:1.0 $core
    }}
}}
foreach bus {{m_axi {slave}}} {{
    if {{[llength [ipx::get_bus_interfaces $bus -of_objects $core]] == 0}} {{
        ipx::infer_bus_interfaces xilinx.com:interface:aximm_rtl:1.0 $core
    }}
    ipx::associate_bus_interfaces -busif $bus -clock {clock} $core
}}
ipx::associate_bus_interfaces -clock {clock} -reset {reset} $core
set polarity [ipx::add_bus_parameter POLARITY [ipx::get_bus_interfaces {reset} -of_objects $core]]
set_property value ACTIVE_LOW $polarity
set sensitivity [ipx::add_bus_parameter SENSITIVITY \\
    [ipx::get_bus_interfaces {interrupt} -of_objects $core]]
set_property value LEVEL_HIGH $sensitivity

# The master: what an interconnect can rely on.
foreach {{name value}} {{
    DATA_WIDTH {config.data_width}
    ADDR_WIDTH {address_bits}
    ID_WIDTH {config.id_width}
    HAS_BURST 1
    SUPPORTS_NARROW_BURST 0
    MAX_BURST_LENGTH {config.max_burst_beats}
    NUM_READ_OUTSTANDING {config.read_outstanding}
    NUM_WRITE_OUTSTANDING {config.write_outstanding}
}} {{
    set parameter [ipx::add_bus_parameter $name [ipx::get_bus_interfaces m_axi -of_objects $core]]
    set_property value $value $parameter
}}
if {{[llength [ipx::get_address_spaces m_axi -of_objects $core]] == 0}} {{
    ipx::add_address_space m_axi $core
}}
set space [ipx::get_address_spaces m_axi -of_objects $core]
set_property range {1 << address_bits} $space
set_property width {config.data_width} $space
set_property master_address_space_ref m_axi [ipx::get_bus_interfaces m_axi -of_objects $core]

# The registers.
if {{[llength [ipx::get_memory_maps {slave} -of_objects $core]] == 0}} {{
    ipx::add_memory_map {slave} $core
}}
set map [ipx::get_memory_maps {slave} -of_objects $core]
set_property slave_memory_map_ref {slave} [ipx::get_bus_interfaces {slave} -of_objects $core]
if {{[llength [ipx::get_address_blocks reg0 -of_objects $map]] == 0}} {{
    ipx::add_address_block reg0 $map
}}
set block [ipx::get_address_blocks reg0 -of_objects $map]
set_property range {_REGISTER_BYTES} $block
set_property width 32 $block
set_property usage register $block
foreach {{register}} {{
{registers}
}} {{
    lassign $register name offset access
    ipx::add_register $name $block
    set entry [ipx::get_registers $name -of_objects $block]
    set_property address_offset $offset $entry
    set_property size 32 $entry
    set_property access $access $entry
}}
"""


_SAVE = """ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
"""

#: IP-XACT's words for the access of a register.
_ACCESS = {
    Access.RO: "read-only",
    Access.RW: "read-write",
    Access.WO: "write-only",
    Access.W1C: "read-write",
}


def _package_ip(config: Config) -> str:
    head = f"""# Packages the accelerator as an IP (IP-XACT) for the IP integrator of Vivado:
#     vivado -mode batch -source package_ip.tcl
# leaves it in ip/. Made for configuration {config.config_hash:08x}.
"""
    pins = ("aclk", "aresetn", "irq")
    return head + _package(config, "hotline", "$here/hotline.v", "ip", "s_axil", pins) + _SAVE


def _package_kernel(config: Config) -> str:
    head = f"""# Packages the accelerator as an RTL kernel for Vitis, managed by the user (xrt::ip):
#     vivado -mode batch -source package_kernel.tcl
# leaves {KERNEL}.xo. Made for configuration {config.config_hash:08x}.
"""
    sources = f"[list $here/hotline.v $here/{KERNEL}.v]"
    pins = (_KERNEL_NAMES["aclk"], _KERNEL_NAMES["aresetn"], _KERNEL_NAMES["irq"])
    body = _package(config, KERNEL, sources, "kernel_ip", _KERNEL_SLAVE, pins)
    return (
        head
        + body
        + f"""set pointer [ipx::get_registers {_KERNEL_POINTER}_LO -of_objects $block]
set_property size 64 $pointer
set_property value m_axi [ipx::add_register_parameter ASSOCIATED_BUSIF $pointer]
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property vitis_drc {{ctrl_protocol user_managed}} $core
set_property ipi_drc {{ignore_freq_hz true}} $core
"""
        + _SAVE
        + f"""package_xo -force -xo_path $here/{KERNEL}.xo -kernel_name {KERNEL} \\
    -ctrl_protocol user_managed -ip_directory $here/kernel_ip -kernel_xml $here/kernel.xml
"""
    )


def _kernel_xml(config: Config) -> str:
    """Description of the kernel for the Vitis linker and XRT."""
    pointer = next(r for r in register_map(config) if r.name == f"{_KERNEL_POINTER}_LO")
    root = ElementTree.Element("root", versionMajor="1", versionMinor="9")
    kernel = ElementTree.SubElement(
        root, "kernel", name=KERNEL, language="ip",
        vlnv=f"{_VENDOR}:{_LIBRARY}:{KERNEL}:{_version()}", attributes="",
        preferredWorkGroupSizeMultiple="0", workGroupSize="1", interrupt="true",
        hwControlProtocol="user_managed",
    )  # fmt: skip
    ports = ElementTree.SubElement(kernel, "ports")
    ElementTree.SubElement(
        ports, "port", name=_KERNEL_SLAVE, mode="slave", range=f"{_REGISTER_BYTES:#x}",
        dataWidth="32", portType="addressable", base="0x0",
    )  # fmt: skip
    ElementTree.SubElement(
        ports, "port", name="m_axi", mode="master",
        range=f"{(1 << _KERNEL_ADDRESS_BITS) - 1:#X}".replace("0X", "0x"),
        dataWidth=str(config.data_width), portType="addressable", base="0x0",
    )  # fmt: skip
    arguments = ElementTree.SubElement(kernel, "args")
    ElementTree.SubElement(
        arguments, "arg", name=_KERNEL_POINTER.lower(), addressQualifier="1", id="0", port="m_axi",
        size="0x8", offset=f"{pointer.offset:#05x}", type="void*", hostOffset="0x0", hostSize="0x8",
    )  # fmt: skip
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _kernel_name(name: str) -> str:
    return _KERNEL_NAMES.get(name, name.replace("s_axil_", f"{_KERNEL_SLAVE}_"))


def _kernel_shell(ports: list[Port]) -> str:
    """A module around the top with the names and the address width of a Vitis kernel."""
    declarations, pins, extra = [], [], []
    for port in ports:
        outer, width = _kernel_name(port.name), port.width
        if port.name in ("m_axi_araddr", "m_axi_awaddr"):
            missing = _KERNEL_ADDRESS_BITS - width
            width = _KERNEL_ADDRESS_BITS
            pins.append(f".{port.name}({outer}[{port.width - 1}:0])")
            if missing:
                extra.append(f"  assign {outer}[{width - 1}:{port.width}] = {missing}'d0;\n")
        else:
            pins.append(f".{port.name}({outer})")
        size = f"[{width - 1}:0] " if width > 1 else ""
        declarations.append(f"{port.direction} {size}{outer}")
    return (
        f"// The accelerator with the port names of a Vitis RTL kernel.\nmodule {KERNEL} (\n  "
        + ",\n  ".join(declarations)
        + "\n);\n"
        + "".join(extra)
        + "  hotline accelerator (\n    "
        + ",\n    ".join(pins)
        + "\n  );\nendmodule\n"
    )
