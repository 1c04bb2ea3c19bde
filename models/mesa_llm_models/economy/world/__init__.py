"""SimSwarm's economy: producers set prices, employ and invest, governments enact policies, metrics are measured.

Source: SimSwarm's economic environment (sneg55/SimSwarm, MIT).

`rules="original"` is that environment, number by number. `rules="corrected"`, the default, changes:

* Hiring costs money: a worker earns a wage every step, paid from the employer's balance. Nobody can hire more workers
  than the balance pays for one step, or than are unemployed. Unpaid workers are laid off. In the original hiring is
  free and unlimited.
* Money is conserved: wages, investments and payments have recipients, and households pay for sales. In the original
  balances are 0, investing a negative amount creates money, and investments vanish.
* Workers produce output, with diminishing returns to capital, and it has to be sold: households spend most of their
  purse, cheapest goods first, and split the rest among equally cheap goods in proportion to supply. In the original
  output is the sum of investments, and there is no demand.
* Counts and amounts are positive and bounded, and prices are not negative. In the original all are accepted, including
  NaN.
* Events report changes relative to the previous value. In the original a threshold of 0.05 applies to a rate and to
  dollars alike.
* Roles matter: governments enact policies and receive taxes, producers produce. In the original everyone is a producer
  and can do everything.
* Policies have effects: `tax_rate` and `minimum_wage` apply. Enacting a policy is a `policy_change` event and replaces
  one of the same name. In the original policies accumulate without effect.
* Paying someone (`allocate`) transfers the money. In the original it does nothing.
* Participants see the others, with the ids needed for payments; if there are many, governments and the cheapest
  sellers.
"""

from mesa_llm_models.economy.world.facts import EconomyFacts, ParticipantView
from mesa_llm_models.economy.world.state import EconomyParameters, EconomyState, Participant, Policy, Role, Value
from mesa_llm_models.economy.world.text import number_text, value_text
from mesa_llm_models.economy.world.world import Economy

__all__ = [
    "Economy",
    "EconomyFacts",
    "EconomyParameters",
    "EconomyState",
    "Participant",
    "ParticipantView",
    "Policy",
    "Role",
    "Value",
    "number_text",
    "value_text",
]
