"""The page of the prediction market: `solara run models/market/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, drawn_by, steady
from mesa_llm.viz.tables import Row
from models.market.charts import gains_figure, money_figure, price_figure, truth_figure
from models.market.model import MarketModel

TRADES_SHOWN = 40
"""Latest trades that are listed."""


@component
def Trades(model: MarketModel) -> None:
    """Show the latest trades, newest first.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        trades, names = list(model.world.ledger.trades), dict(model.world.names)
        questions = {number: fate.text for number, fate in zip(model.world.ledger.markets, model.fates, strict=True)}
    rows = [
        Row(
            (
                str(trade.step),
                names.get(trade.actor, f"trader {trade.actor}"),
                f"{'buys' if trade.side == 'buy' else 'sells'} {trade.shares:.2f} {trade.outcome.upper()}",
                questions[trade.market_id],
                f"${trade.dollars:.2f}",
                f"${trade.price_yes:.3f}",
            )
        )
        for trade in reversed(trades[-TRADES_SHOWN:])
    ]
    columns = ("Step", "Who", "Trade", "Question", "Dollars", "YES afterwards")
    Markup("table.html", columns=columns, rows=rows, more=len(trades) - len(rows), nothing="Nobody has traded yet.")


model_params = {
    "n_agents": {"type": "SliderInt", "label": "Traders", "value": 12, "min": 1, "max": 50, "step": 1},
    "n_questions": {"type": "SliderInt", "label": "Questions", "value": 4, "min": 1, "max": 20, "step": 1},
    "maker": {
        "type": "Select",
        "label": "Market maker",
        "value": "fixed_product",
        "values": ["fixed_product", "lmsr", "constant_product_legacy"],
    },
    "rules": {"type": "Select", "label": "Rules", "value": "corrected", "values": ["corrected", "original"]},
    "horizon": {"type": "SliderInt", "label": "Last answer in step", "value": 10, "min": 1, "max": 50, "step": 1},
    "noise": {
        "type": "SliderFloat",
        "label": "Error of private hints",
        "value": 1.0,
        "min": 0.0,
        "max": 4.0,
        "step": 0.1,
    },
    "liquidity": {
        "type": "SliderFloat",
        "label": "Depth of the market, $",
        "value": 500.0,
        "min": 20.0,
        "max": 2000.0,
        "step": 20.0,
    },
    "fee": {
        "type": "SliderFloat",
        "label": "Fee, share of a trade",
        "value": 0.0,
        "min": 0.0,
        "max": 0.1,
        "step": 0.005,
    },
}

page = LLMPage(
    MarketModel,
    model_params=model_params,
    components=[
        drawn_by(price_figure),
        drawn_by(money_figure),
        drawn_by(truth_figure),
        drawn_by(gains_figure),
        (Trades, "Trades"),
    ],
    name="Prediction market",
)
