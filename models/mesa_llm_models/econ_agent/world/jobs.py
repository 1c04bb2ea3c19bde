"""The jobs of EconAgent's households: ten salary bands with ten titles each, and the offers.

The band edges are the paper's; the titles are our own.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from mesa_llm.world import RNG, Rules
from mesa_llm_models.econ_agent.world.state import UNEMPLOYED

BAND_EDGES = (0, 2_454, 4_838, 7_565, 10_777, 14_712, 19_603, 26_015, 35_469, 52_370, 10_000_000)
"""Monthly salaries in dollars at which the ten bands begin, and the end of the last one."""

TITLES_PER_BAND = 10

_TITLES = (
    "Dishwasher, Dog walker, Fruit picker, Laundry worker, Leaflet distributor, Cloakroom attendant, "
    "Parking attendant, Shelf stacker, Street sweeper, Ticket collector",
    "Bakery assistant, Bus cleaner, Call-centre clerk, Courier rider, Gardener, Kitchen porter, "
    "Library assistant, Nursery aide, Till operator, Warehouse picker",
    "Barber, Bricklayer, Bus driver, Cook, Dental assistant, Machine operator, Postal worker, "
    "School secretary, Tailor, Van driver",
    "Bookkeeper, Carpenter, Dispatcher, Electrician, Lab technician, Locksmith, Paramedic, "
    "Payroll clerk, Plumber, Travel consultant",
    "Accountant, Graphic designer, Insurance adjuster, Interpreter, Nurse, Police officer, "
    "Primary school teacher, Surveyor, Web developer, Welding inspector",
    "Auditor, Biologist, Building inspector, Civil engineer, Database administrator, Editor, "
    "Physiotherapist, Secondary school teacher, Statistician, Tax adviser",
    "Architect, Chemical engineer, Economist, Geologist, Head nurse, Patent examiner, Pharmacist, "
    "Product manager, Software engineer, Veterinarian",
    "Actuary, Aerospace engineer, Air traffic controller, Attorney, Hotel director, Optometrist, "
    "Research director, Sales director, Systems architect, University professor",
    "Airline captain, Dentist, Family doctor, Finance director, Fund analyst, Hospital administrator, "
    "Petroleum engineer, Psychiatrist, Regional judge, Technology director",
    "Anaesthetist, Bank president, Cardiologist, Chief executive, Fund manager, Heart surgeon, "
    "Law firm partner, Neurosurgeon, Orthodontist, Shipping magnate",
)

TITLES: tuple[str, ...] = tuple(title for band in _TITLES for title in band.split(", "))
"""All titles: index `10 * band + k` is the k-th of a band."""


def bands_of(salary: float, rules: Rules = "corrected") -> tuple[int, ...]:
    """Find the bands of a monthly salary.

    Args:
        salary: Dollars a month, at least 0.
        rules: `original` counts an edge in both its bands, and has no band above ten million. `corrected` counts an
            edge in the upper band, and leaves the last band open.

    Returns:
        Indices of the bands, 0..9, lowest first; one under the corrected rules.
    """
    if rules == "corrected":
        return (max(0, min(bisect_right(BAND_EDGES, salary), len(BAND_EDGES) - 1) - 1),)
    pairs = pairwise(BAND_EDGES)
    return tuple(band for band, (low, high) in enumerate(pairs) if low <= salary <= high)


def draw_offer(salary: float, former: int, rules: Rules, rng: RNG) -> int:
    """Draw the title of a new job offer. If two bands fit, each draws and the upper one counts.

    Args:
        salary: Dollars per month that the household could earn.
        former: Index of the previous offer, kept if no band fits.
        rules: See `bands_of`.
        rng: Random generator.
    """
    for band in bands_of(salary, rules):
        former = TITLES_PER_BAND * band + rng.randint(0, TITLES_PER_BAND - 1)
    return former


def title_of(job: int) -> str:
    """Return a job title by index, or `unemployed`."""
    return "unemployed" if job == UNEMPLOYED else TITLES[job]
