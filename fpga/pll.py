"""Parameters of the phase-locked loops that make a board's core clock, exactly.

Sources: Lattice FPGA-TN-02200 (ECP5 sysCLOCK) and FPGA-DS-02012 for the ECP5, FPGA-TN-02052 (iCE40
sysCLOCK) and FPGA-DS-02008 for the iCE40: the formulas, and the ranges of the frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Ecp5Pll", "Ice40Pll", "ecp5_pll", "ice40_pll"]

#: In MHz.
_ECP5_PHASE_DETECTOR, _ECP5_OSCILLATOR = (10, 400), (400, 800)
_ECP5_MAX_DIVISOR = 128
_ICE40_PHASE_DETECTOR, _ICE40_OSCILLATOR = (10, 133), (533, 1066)
_ICE40_MAX = {"divr": 15, "divf": 127, "divq": 6}
#: Upper ends (MHz) of the ranges of FILTER_RANGE 1 to 6, by the phase detector's frequency.
_ICE40_FILTERS = (17, 26, 44, 66, 101, 133)
#: Steps of FPHASE in a cycle of the oscillator.
_FINE = 8


@dataclass(frozen=True)
class Ecp5Pll:
    """Parameters of an EHXPLLL: feedback from CLKOP, the clock on CLKOS, and again on CLKOS2.

    Parameters
    ----------
    reference, feedback, loop : int
        CLKI_DIV, CLKFB_DIV, CLKOP_DIV.
    output : int
        CLKOS_DIV and CLKOS2_DIV.
    coarse, fine : int
        How much CLKOS2 is behind CLKOS: cycles of the oscillator, and eighths of one.
    """

    reference: int
    feedback: int
    loop: int
    output: int
    coarse: int = 0
    fine: int = 0

    def oscillator_mhz(self, clock_in_mhz: float) -> Fraction:
        """Frequency of the oscillator."""
        return Fraction(clock_in_mhz) * self.feedback * self.loop / self.reference

    def clock_mhz(self, clock_in_mhz: float) -> Fraction:
        """The clock that comes out."""
        return self.oscillator_mhz(clock_in_mhz) / self.output

    @property
    def phase(self) -> Fraction:
        """Degrees of CLKOS2 behind CLKOS."""
        return Fraction(360 * (_FINE * self.coarse + self.fine), _FINE * self.output)


@dataclass(frozen=True)
class Ice40Pll:
    """Parameters of an SB_PLL40 with simple feedback.

    Parameters
    ----------
    divr, divf, divq, filter_range : int
        As the parameters of the primitive.
    """

    divr: int
    divf: int
    divq: int
    filter_range: int

    def clock_mhz(self, clock_in_mhz: float) -> Fraction:
        """The clock that comes out."""
        return Fraction(clock_in_mhz) * (self.divf + 1) / ((self.divr + 1) << self.divq)


def ecp5_pll(clock_in_mhz: float, clock_mhz: float, phase: float = 0.0) -> Ecp5Pll:
    """Parameters for an exact frequency, with the oscillator near the middle of its range.

    Parameters
    ----------
    clock_in_mhz, clock_mhz : float
        What goes in, and what is wanted.
    phase : float
        Degrees of the second output behind the first, 0 to 360, rounded to an eighth of a cycle
        of the oscillator.

    Raises
    ------
    ValueError
        The PLL cannot make this clock exactly.
    """
    middle = Fraction(sum(_ECP5_OSCILLATOR), 2)
    choices = []
    for reference in range(1, _ECP5_MAX_DIVISOR + 1):
        compared = Fraction(clock_in_mhz) / reference
        if not _within(compared, _ECP5_PHASE_DETECTOR):
            continue
        for output in range(1, _ECP5_MAX_DIVISOR + 1):
            oscillator = Fraction(clock_mhz) * output
            loop = oscillator / compared
            # Feedback at the frequency of the phase detector: CLKFB_DIV is 1.
            if (
                _within(oscillator, _ECP5_OSCILLATOR)
                and loop.denominator == 1
                and loop <= _ECP5_MAX_DIVISOR
            ):
                choices.append((abs(oscillator - middle), reference, int(loop), output))
    if not choices:
        raise _impossible("ECP5", clock_in_mhz, clock_mhz)
    _, reference, number, output = min(choices)
    steps = round(phase / 360 * output * _FINE)
    return Ecp5Pll(reference, 1, number, output, steps // _FINE, steps % _FINE)


def ice40_pll(clock_in_mhz: float, clock_mhz: float) -> Ice40Pll:
    """Parameters for an exact frequency.

    Parameters
    ----------
    clock_in_mhz, clock_mhz : float
        What goes in, and what is wanted.

    Raises
    ------
    ValueError
        The PLL cannot make this clock exactly.
    """
    for divr in range(_ICE40_MAX["divr"] + 1):
        compared = Fraction(clock_in_mhz) / (divr + 1)
        if not _within(compared, _ICE40_PHASE_DETECTOR):
            continue
        for divq in range(1, _ICE40_MAX["divq"] + 1):
            oscillator = Fraction(clock_mhz) * (1 << divq)
            factor = oscillator / compared
            if (
                _within(oscillator, _ICE40_OSCILLATOR)
                and factor.denominator == 1
                and factor <= _ICE40_MAX["divf"] + 1
            ):
                chosen = next(i for i, end in enumerate(_ICE40_FILTERS, 1) if compared <= end)
                return Ice40Pll(divr, int(factor) - 1, divq, chosen)
    raise _impossible("iCE40", clock_in_mhz, clock_mhz)


def _within(frequency: Fraction, limits: tuple[int, int]) -> bool:
    return limits[0] <= frequency <= limits[1]


def _impossible(family: str, clock_in_mhz: float, clock_mhz: float) -> ValueError:
    return ValueError(
        f"core_mhz must be a frequency that the PLL of an {family} makes from {clock_in_mhz:g} "
        f"MHz, not {clock_mhz:g}"
    )
