"""The page of the economy: `mesa-llm app models/mesa_llm_models/economy/app.py`."""

from __future__ import annotations

from mesa_llm.viz import LLMPage, Row, drawn_by, table_of
from mesa_llm_models.economy.charts import goods_chart, money_chart, price_chart, work_chart
from mesa_llm_models.economy.model import EconomyModel


def book_cells(model: EconomyModel) -> list[Row]:
    """List everyone's books."""
    return [
        Row(
            (
                f"{player.unique_id} · {player.config.name}",
                own.role,
                f"${own.balance:,.2f}",
                f"{own.workforce}",
                f"${own.price:.2f}" if own.price else "–",
                f"{own.output:.1f}",
                f"${own.sales:,.2f}",
                f"{own.stock:.1f}",
                f"${own.capital:,.2f}",
            ),
            agent=player.unique_id,
        )
        for player in model.agents
        for own in (player.account,)
    ]


COLUMNS = ("Who", "Role", "Balance", "Workers", "Price", "Made", "Sales", "Unsold", "Capital")

page = LLMPage(
    EconomyModel,
    components=[
        drawn_by(work_chart),
        drawn_by(price_chart),
        drawn_by(goods_chart),
        drawn_by(money_chart),
        (table_of(book_cells, COLUMNS, nothing="Nobody is here.", max_rows=1000), "Data", "Books"),
    ],
    name="Economy",
)
