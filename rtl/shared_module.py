"""One module, many instances.

Amaranth writes a module of its own for each submodule, even for equal ones. A hot table has up to
64 equal banks; written once and instantiated, they take seconds instead of minutes to generate,
and the Verilog can be read.
"""

from __future__ import annotations

from amaranth import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["ModuleLibrary", "add_shared"]


class ModuleLibrary:
    """Stands in for the platform while Verilog is generated, and collects shared modules.

    Members
    -------
    modules : dict of str to Component
        What is to be generated beside the top, by module name.
    """

    def __init__(self) -> None:
        self.modules: dict[str, wiring.Component] = {}

    def instance(self, component: wiring.Component, module: str) -> Instance:
        """An instance of `module` on the ports of `component`."""
        self.modules.setdefault(module, component)
        # Only its ports are used, and Amaranth would warn that it is not elaborated.
        component._MustUse__used = True
        ports: dict[str, object] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in component.signature.flatten(component):
            direction = "i" if member.flow is In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = value
        return Instance(module, **ports)


def add_shared(
    m: Module, platform: object, name: str, component: wiring.Component, module: str
) -> None:
    """Add `component` to `m` as submodule `name`.

    Where Verilog is being generated, all components that are added with the same `module` become
    instances of one module; they must be equal. In Amaranth's own simulator they stay submodules.
    The clock domain must be `sync` and its reset must not come from a ``ResetInserter``.
    """
    if isinstance(platform, ModuleLibrary):
        m.submodules[name] = platform.instance(component, module)
    else:
        m.submodules[name] = component
