"""The two listed companies: past figures, and reports published during trading."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mesa_llm_models.stock_agent.world.state import Stock


class QuarterlyReport(NamedTuple):
    """One quarterly report; money in millions."""

    day: int
    """Day of publication, in the first session."""

    revenue_growth_pct: float
    """Year-on-year change in revenue."""

    revenue: float
    gross_margin_pct: float
    income_tax_pct: float
    """Share of revenue, like the other expenses below."""

    selling_expense_pct: float
    management_expense_pct: float
    net_profit: float
    depreciation_pct: float
    capital_expenditure_pct: float
    working_capital_change_pct: float
    cash_flow: float


class Company(NamedTuple):
    """A listed company; figures in millions, oldest quarter first."""

    stock: Stock
    """Its share."""

    listed_years: int
    """Number of years since its listing."""

    revenue: tuple[float, ...]
    """Twelve quarters."""

    net_profit: tuple[float, ...]
    """Twelve quarters; the original gives only ten for company B."""

    cash_flow: tuple[float, ...]
    """Twelve quarters."""

    reports: tuple[QuarterlyReport, ...]
    """Reports published during trading."""


# fmt: off
COMPANY_A = Company(
    stock="A",
    listed_years=10,
    revenue=(
        3696.19, 3578.0, 3595.49, 3215.64, 3973.4, 3810.57, 3840.7, 3433.02, 4344.52,
        4095.22, 4114.16, 3717.96,
    ),
    net_profit=(
        127.711441, 217.9586418, 360.756337, 358.08228, 650.8868033, 693.3022798,
        433.2338757, 517.0593354, 712.7358875, 628.310145, 250.5046675, 325.5147258,
    ),
    cash_flow=(
        30.0950631, 135.4141818, 344.3249477, 279.5563512, 564.624197, 642.8122273,
        350.3899245, 493.4058465, 650.6526937, 579.0037013, 185.7066407, 273.1287018,
    ),
    reports=(
        QuarterlyReport(12, 9.49, 4483.99, 41.05, 11.31, 6.83, 3.83, 856.6705, 0.91, 2.3, 0.82, 756.7537),
        QuarterlyReport(78, 7.38, 4417.79, 35.68, 11.75, 8.13, 4.62, 493.9451, 1.34, 2.68, 0.86, 396.5329),
        QuarterlyReport(144, 8.7, 4041.3, 37.45, 9.34, 6.79, 3.41, 724.3648, 1.27, 2.44, 0.94, 639.5329),
        QuarterlyReport(210, 7.75, 5024.04, 42.47, 10.67, 6.56, 4.72, 1031.214, 1.08, 2.71, 0.08, 945.5034),
    ),
)
COMPANY_B = Company(
    stock="B",
    listed_years=3,
    revenue=(
        570.0, 774.0, 643.0, 995.0, 684.46, 934.37, 782.08, 1204.05, 788.29, 1100.32,
        914.96, 1418.37,
    ),
    net_profit=(
        85.9691, 142.086, 87.5419224, 135.7643678, 132.7973368, 169.6505746, 194.9436163,
        272.1084953, 225.1707811, 356.7201332,
    ),
    cash_flow=(
        68.97, 90.171, 82.1754, 124.773, 75.4954968, 123.5240842, 132.7191287, 153.7571212,
        194.9436163, 261.1053212, 216.3871992, 345.6568448,
    ),
    reports=(
        QuarterlyReport(12, 19.96, 1319.94, 31.21, 0.7, 4.69, 8.78, 224.9179, 1.13, 1.77, 0.59, 208.7266),
        QuarterlyReport(78, 19.86, 1096.7, 31.26, 0.71, 3.62, 9.9, 186.7678, 0.67, 1.44, -0.31, 181.6862),
        QuarterlyReport(144, 18.21, 1676.7, 31.58, 0.92, 3.78, 10.27, 278.3327, 0.77, 1.56, -0.06, 266.1486),
        QuarterlyReport(210, 15.98, 1075.13, 32.41, 1.08, 3.79, 10.7, 181.1602, 1.09, 2.28, 0.67, 161.1985),
    ),
)
# fmt: on

COMPANIES: Mapping[Stock, Company] = MappingProxyType({"A": COMPANY_A, "B": COMPANY_B})
"""The companies by stock, with the figures of the StockAgent program."""


def report_on(company: Company, day: int) -> QuarterlyReport | None:
    """Return the report a company publishes on a day, or None."""
    return next((report for report in company.reports if report.day == day), None)
