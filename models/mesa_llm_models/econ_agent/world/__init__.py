"""EconAgent's macroeconomy: households work, pay tax, buy and save each month; a bank sets the interest rate.

In each month, everyone plans; those who work are paid and produce goods; incomes are taxed and the revenue is
redistributed equally; households buy in turn until the goods run out; wages and the price follow the market imbalance.
At the end of a year savings bear interest and the bank sets a new rate. The unemployed get job offers.

Source: Li et al. (2024), EconAgent: Large Language Model-Empowered Agents for Simulating Macroeconomic
Activities, ACL, arXiv 2310.10436.

`rules="original"` is the published economy, number by number. `rules="corrected"`, the default, changes:

* Income and consumption are last month's. In the original they stay at their last positive value while a household is
  unemployed or buys nothing, and so report pay it did not get.
* A spending share is rounded to the nearest level. In the original 0.58 and 0.94 lose a level.
* Skills are assigned at random. In the original the id is the rank of the wage.
* Money is conserved. The producer borrows to pay wages and repays from sales, so its debt equals total savings.
  Interest on savings is added to that debt. In the original interest comes from nowhere.
* A household without a plan stays at home, buys nothing and is counted. In the original it works and spends half.
* Growth of unemployment is undefined after a year with none. In the original it is divided by 1e-8.
* Goods are reported as short only where demand was not met. In the original also where a household had no money.
* An unchanged wage or price is reported as unchanged. In the original it is called rising.
* Inequality is measured alike for all numbers of households. In the original the Gini coefficient falls by a fifteenth
  from 29 to 30 of them.
* A wage on the edge of two bands belongs to the upper one, and the last band is open.
* A willingness of 0 never works: the draw must be below it, while the original allows equality.
"""

from mesa_llm_models.econ_agent.world.facts import HouseholdFacts, date_of
from mesa_llm_models.econ_agent.world.jobs import title_of
from mesa_llm_models.econ_agent.world.rules import (
    MonthlyEconomy,
    consumption_level,
    draw_households,
    level_share,
    uniforms,
)
from mesa_llm_models.econ_agent.world.state import (
    CONSUMPTION_STEP,
    EPSILON,
    MONTHS_PER_YEAR,
    NO_TAX,
    TOP_LEVEL,
    UNEMPLOYED,
    US_TAX,
    BoolArray,
    FloatArray,
    Households,
    IntArray,
    MacroParameters,
    TaxSchedule,
    flat_tax,
)
from mesa_llm_models.econ_agent.world.text import tax_text
from mesa_llm_models.econ_agent.world.world import Macroeconomy

__all__ = [
    "CONSUMPTION_STEP",
    "EPSILON",
    "MONTHS_PER_YEAR",
    "NO_TAX",
    "TOP_LEVEL",
    "UNEMPLOYED",
    "US_TAX",
    "BoolArray",
    "FloatArray",
    "HouseholdFacts",
    "Households",
    "IntArray",
    "MacroParameters",
    "Macroeconomy",
    "MonthlyEconomy",
    "TaxSchedule",
    "consumption_level",
    "date_of",
    "draw_households",
    "flat_tax",
    "level_share",
    "tax_text",
    "title_of",
    "uniforms",
]
