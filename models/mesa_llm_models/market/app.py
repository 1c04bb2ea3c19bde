"""The page of the prediction market: `mesa-llm app models/mesa_llm_models/market/app.py`."""

from __future__ import annotations

from mesa_llm.viz import LLMPage, Row, drawn_by, table_of
from mesa_llm_models.market.charts import gains_chart, money_chart, price_chart, truth_chart
from mesa_llm_models.market.model import MarketModel


def trade_cells(model: MarketModel) -> list[Row]:
    """List the trades, newest first."""
    world = model.world
    questions = {market_id: fate.text for market_id, fate in zip(world.ledger.markets, model.fates, strict=True)}
    return [
        Row(
            (
                f"{trade.step}",
                world.names.get(trade.agent_id, f"trader {trade.agent_id}"),
                f"{'buys' if trade.side == 'buy' else 'sells'} {trade.shares:.2f} {trade.outcome.upper()}",
                questions[trade.market_id],
                f"${trade.dollars:.2f}",
                f"${trade.price_yes:.3f}",
            ),
            agent=trade.agent_id,
            step=trade.step,
        )
        for trade in reversed(world.ledger.trades)
    ]


COLUMNS = ("Step", "Who", "Trade", "Question", "Dollars", "YES afterwards")

prices = drawn_by(price_chart)
"""What everybody sees: it leaves out the true chances while a person plays."""

page = LLMPage(
    MarketModel,
    components=[
        prices,
        drawn_by(money_chart),
        drawn_by(truth_chart),
        drawn_by(gains_chart),
        (table_of(trade_cells, COLUMNS, nothing="Nobody has traded yet.", max_rows=40), "Data", "Trades"),
    ],
    players_see=[prices],
    name="Prediction market",
)
