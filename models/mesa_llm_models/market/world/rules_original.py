"""SimSwarm's rules of the prediction markets: its checks in their order, and its arithmetic with its defects."""

from __future__ import annotations

from mesa_llm_models.market.world.makers import MakerName, Outcome
from mesa_llm_models.market.world.rules import Ledger, answer_of, require_positive
from mesa_llm_models.market.world.state import Comment, Market, MarketQuestion, unused_slug


class OriginalLedger(Ledger):
    """A ledger that does not check settings, comments and trade sizes: NaN passes, as does a closed market."""

    def check_settings(self) -> None:
        """Accept any settings."""

    def open(self, question: MarketQuestion, maker_name: MakerName, liquidity: float) -> None:
        """Open the market of a question at any price and depth, with an id that may be cut mid-word."""
        market_id = unused_slug(question.text, self.markets, keep_readable=False)
        self.add_market(market_id, question, maker_name, liquidity)

    def comment(self, agent_id: int, market_id: str, text: str, step: int) -> Comment:
        """Record any comment on any market."""
        return self.add_comment(agent_id, market_id, text, step)

    def tradable(self, market_id: str, outcome: str, size: float, size_name: str) -> tuple[Market, Outcome]:
        """Check answer, market and sign of a trade.

        Raises:
            ToolError: If the market or answer is unknown, or the size is 0 or less.
        """
        side = answer_of(str(outcome))
        market = self.find(market_id)
        require_positive(size, size_name)
        return market, side
