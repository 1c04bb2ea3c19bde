"""What news of one world does in another: the town's paper reports, and the crowd bets on what goes viral."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mesa_llm.bridge import Bridge
from mesa_llm.errors import ToolError
from mesa_llm.records import Event
from mesa_llm.text import clip
from mesa_llm.worlds.beliefs import tone
from models.three_worlds.opinions import own_words

if TYPE_CHECKING:
    from models.three_worlds.model import ThreeWorldsModel

PAPER = "Town Gazette"
CROWD = "The crowd"

REPORTED = ("employment_rate", "avg_price")
"""Metrics of the economy that the paper reports."""

NEWS = ("price_move", "market_resolved", "policy_change", "metric_change", "news")
"""Kinds of news that the paper reports: all but posts."""

LEAST_TONE = 0.05
"""Tone below which a post says nothing for or against; VADER's own limit."""


class Crossings:
    """Lets the news of each world act on the others.

    Attributes:
        paper: Account of the paper, which writes on the social network and under markets.
        crowd: Account of the crowd, which bets.
        reports: What was told so far, in the words of the news; posts that quote it argue for nothing by that.
    """

    def __init__(self, model: ThreeWorldsModel, paper: int, crowd: int, crowd_dollars: float) -> None:
        """Open the accounts.

        Args:
            model: The model.
            paper: Account of the paper.
            crowd: Account of the crowd.
            crowd_dollars: What the crowd bets on each viral post, as far as its cash goes.
        """
        self.model, self.paper, self.crowd, self.crowd_dollars = model, paper, crowd, crowd_dollars
        self.n_reports = self.n_bets = 0
        self.reports: dict[str, None] = {}
        model.social.sign_up(paper, PAPER)
        model.market.names |= {paper: PAPER, crowd: CROWD}

    def strike(self, bridge: Bridge) -> None:
        """Let scheduled policies strike the economy, whether news crosses or not; and know news when it is quoted."""
        bridge.connect("policy_change", self.enact)
        for kind in NEWS:
            bridge.connect(kind, self.note)

    def open(self, bridge: Bridge) -> None:
        """Let news cross."""
        for kind in NEWS:
            bridge.connect(kind, self.report)
        for kind in ("policy_change", "metric_change", "viral_post", "news"):
            bridge.connect(kind, self.remark)
        bridge.connect("viral_post", self.bet)

    def note(self, event: Event) -> None:
        """Remember the words of the news."""
        if event.text:
            self.reports[event.text] = None

    def enact(self, event: Event) -> None:
        """Put a scheduled policy in force in the economy, in place of those that set the same variable."""
        facts, economy = event.facts, self.model.economy
        if event.source != "schedule" or facts.get("variable") is None:
            return
        policies = economy.state.policies
        policies[:] = [policy for policy in policies if policy.variable != facts["variable"]]
        first = next(iter(economy.state.participants.values()))
        economy.rules.enact(first, facts["policy"], facts["description"], facts["variable"], facts["value"])

    def report(self, event: Event) -> None:
        """Write of it on the social network."""
        if is_worth_telling(event):
            self.model.social.create_post(self.paper, event.text)
            self.n_reports += 1

    def remark(self, event: Event) -> None:
        """Write of it under the questions that it bears on."""
        if not is_worth_telling(event):
            return
        about = ("opinion",) if event.kind == "viral_post" else REPORTED
        about = (event.facts["metric"],) if event.kind == "metric_change" else about
        for market_id in self.open_markets(*about):
            self.model.market.comment_on_market(self.paper, market_id, clip(event.text, 300))

    def bet(self, event: Event) -> None:
        """Bet with the crowd on what a viral post stands for, as far as its cash goes."""
        said = tone(own_words(str(event.facts.get("text", "")), self.reports))
        dollars = min(self.crowd_dollars, self.model.market.ledger.portfolio(self.crowd).cash)
        if abs(said) < LEAST_TONE or dollars <= 0:
            return
        for market_id in self.open_markets("opinion"):
            try:
                self.model.market.buy_shares(self.crowd, market_id, "yes" if said > 0 else "no", dollars)
            except ToolError:  # a limit of the market: the crowd stays away
                return
            self.n_bets += 1

    def open_markets(self, *measures: Any) -> list[str]:
        """Name the open markets on these measures."""
        markets = self.model.market.ledger.markets
        return [key for key, claim in self.model.claims.items() if claim.measure in measures and markets[key].is_open]


def is_worth_telling(event: Event) -> bool:
    """Tell whether the paper writes of an event: of all but a few metrics."""
    return event.kind != "metric_change" or event.facts.get("metric") in REPORTED
