"""The page of the economy: `mesa-llm app models/mesa_llm_models/economy/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, Row, drawn_by, steady
from mesa_llm_models.economy.charts import goods_figure, money_figure, price_figure, work_figure
from mesa_llm_models.economy.model import EconomyModel


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
                    f"{agent_id} · {name}",
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
            for agent_id, name, own in books
        ]
    columns = ("Who", "Role", "Balance", "Workers", "Price", "Made", "Sales", "Unsold", "Capital")
    Markup("table.html", columns=columns, rows=rows, more=0, nothing="Nobody is here.")


page = LLMPage(
    EconomyModel,
    components=[
        drawn_by(work_figure),
        drawn_by(price_figure),
        drawn_by(goods_figure),
        drawn_by(money_figure),
        (Books, "Books"),
    ],
    name="Economy",
)
