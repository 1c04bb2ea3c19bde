"""Says in words what happened in the economy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.economy.model import EconomyModel

MOST_FIRMS = 10
"""Most firms that are told of."""


def tell(model: EconomyModel) -> str:
    """Tell what was enacted, how the measures moved, who employs whom at which price, and where the money is.

    Args:
        model: The model, after a run.
    """
    state, names = model.world.state, model.world.names
    moved = model.datacollector.get_model_vars_dataframe()
    first, last = moved.iloc[0], moved.iloc[-1]
    lines = [
        f"{names[policy.enacted_by]} enacted {policy.name} (step {policy.step + 1}): {policy.description}"
        for policy in state.policies
    ]
    lines += [
        f"Work went from {first.employment_rate:.1%} to {last.employment_rate:.1%} of people; goods cost "
        f"${last.average_price:.2f} on average; {last.total_output:.0f} were made in the last step, and "
        f"{last.unsold:.0f} are unsold.",
        *(firm_line(player) for player in list(model.agents)[:MOST_FIRMS] if player.role == "producer"),
        f"Of ${model.money:,.0f} in all, firms have ${model.firms_money:,.0f}, households "
        f"${model.households_money:,.0f} and the government ${model.government_money:,.0f}.",
    ]
    return "\n".join(["What happened:", *lines])


def firm_line(player: Any) -> str:
    """Tell how a firm stands."""
    own = player.account
    return (
        f"{player.config.name} employs {own.workforce}, asks ${own.price:.2f}, took ${own.sales:.0f} in the last step "
        f"and has ${own.balance:,.0f}."
    )
