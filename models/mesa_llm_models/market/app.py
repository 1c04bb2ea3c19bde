"""The page of the prediction market: `mesa-llm app models/mesa_llm_models/market/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, Row, drawn_by, steady
from mesa_llm_models.market.charts import gains_figure, money_figure, price_figure, truth_figure
from mesa_llm_models.market.model import MarketModel

MAX_TRADES = 40
"""Maximum number of trades that are listed, the latest."""


@component
def Trades(model: MarketModel) -> None:
    """Show the latest trades, newest first.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        trades, names = list(model.world.ledger.trades), dict(model.world.names)
        questions = {
            market_id: fate.text for market_id, fate in zip(model.world.ledger.markets, model.fates, strict=True)
        }
    rows = [
        Row(
            (
                str(trade.step),
                names.get(trade.agent_id, f"trader {trade.agent_id}"),
                f"{'buys' if trade.side == 'buy' else 'sells'} {trade.shares:.2f} {trade.outcome.upper()}",
                questions[trade.market_id],
                f"${trade.dollars:.2f}",
                f"${trade.price_yes:.3f}",
            )
        )
        for trade in reversed(trades[-MAX_TRADES:])
    ]
    columns = ("Step", "Who", "Trade", "Question", "Dollars", "YES afterwards")
    Markup("table.html", columns=columns, rows=rows, more=len(trades) - len(rows), nothing="Nobody has traded yet.")


page = LLMPage(
    MarketModel,
    components=[
        drawn_by(price_figure),
        drawn_by(money_figure),
        drawn_by(truth_figure),
        drawn_by(gains_figure),
        (Trades, "Trades"),
    ],
    name="Prediction market",
)
