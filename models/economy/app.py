"""The page of the economy: `solara run models/economy/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, drawn_by, steady
from mesa_llm.viz.tables import Row
from models.economy.charts import goods_figure, money_figure, price_figure, work_figure
from models.economy.model import EconomyModel


@component
def Books(model: EconomyModel) -> None:
    """Show everyone's books.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        books = [(player.unique_id, player.config.name, player.account) for player in model.agents]
        rows = [
            Row(
                (
                    f"{number} · {name}",
                    own.role,
                    f"${own.balance:,.2f}",
                    f"{own.workforce}",
                    f"${own.price:.2f}" if own.price else "–",
                    f"{own.output:.1f}",
                    f"${own.sales:,.2f}",
                    f"{own.stock:.1f}",
                    f"${own.capital:,.2f}",
                )
            )
            for number, name, own in books
        ]
    columns = ("Who", "Role", "Balance", "Workers", "Price", "Made", "Sales", "Unsold", "Capital")
    Markup("table.html", columns=columns, rows=rows, more=0, nothing="Nobody is here.")


model_params = {
    "n_agents": {"type": "SliderInt", "label": "Participants", "value": 9, "min": 1, "max": 50, "step": 1},
    "government": {"type": "Checkbox", "label": "The first participant governs", "value": True},
    "rules": {"type": "Select", "label": "Rules", "value": "corrected", "values": ["corrected", "original"]},
    "payout": {
        "type": "SliderFloat",
        "label": "Share of profits paid out",
        "value": 0.9,
        "min": 0.0,
        "max": 1.0,
        "step": 0.1,
    },
    "labor_force": {
        "type": "SliderInt",
        "label": "People who can work",
        "value": 1000,
        "min": 10,
        "max": 5000,
        "step": 10,
    },
    "wage": {
        "type": "SliderFloat",
        "label": "Wage at the start, $",
        "value": 10.0,
        "min": 1.0,
        "max": 50.0,
        "step": 1.0,
    },
    "spending_share": {
        "type": "SliderFloat",
        "label": "Share of money households spend",
        "value": 0.9,
        "min": 0.0,
        "max": 1.0,
        "step": 0.05,
    },
}

page = LLMPage(
    EconomyModel,
    model_params=model_params,
    components=[
        drawn_by(work_figure),
        drawn_by(price_figure),
        drawn_by(goods_figure),
        drawn_by(money_figure),
        (Books, "Books"),
    ],
    name="Economy",
)
