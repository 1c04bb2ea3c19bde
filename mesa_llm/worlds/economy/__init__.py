"""SimSwarm's economy: producers set prices, employ and invest, governments enact policies, metrics are measured.

Source: SimSwarm's economic environment (sneg55/SimSwarm, MIT).

`rules="original"` is that environment, number by number. `rules="corrected"`, the default, mends:

* Hiring costs: a worker earns a wage every step out of the employer's balance. Nobody can hire more than the
  balance pays for a step, nor more people than are free, and who cannot pay loses the workers it cannot pay.
  In the original hiring is free and without limit.
* Money is conserved: wages, investments and payments go to someone, and sales are paid by households. In the
  original balances are 0, investing a negative amount makes money, and what is invested vanishes.
* Output is what workers make, with diminishing returns to capital, and has to be sold: households spend most
  of their purse, cheapest goods first, and divide what is left among equally cheap goods in proportion to what
  is offered. In the original output is the sum of what was invested, and there is no demand.
* Counts and amounts are positive and bounded, prices not negative. In the original all are accepted, and NaN
  with them.
* Events report changes relative to the value before. In the original one threshold of 0.05 serves a rate
  and dollars alike.
* Roles count: governments enact policies and receive the tax, producers produce. In the original everyone is
  a producer and does everything.
* Policies can act: `tax_rate` and `minimum_wage` take effect. Enacting one is a `policy_change`
  event, and replaces a policy of the same name. In the original policies pile up and do nothing.
* Paying someone (`allocate`) moves the money. In the original it does nothing.
* Participants see the others, with the ids that payments need; of many, governments and the cheapest sellers.
"""

from mesa_llm.worlds.economy.facts import EconomyFacts, ParticipantView
from mesa_llm.worlds.economy.state import EconomyParameters, EconomyState, Participant, Policy, Role, Value
from mesa_llm.worlds.economy.text import number_text, value_text
from mesa_llm.worlds.economy.world import Economy

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
