"""Crossings between the worlds of the town: outside shocks, the paper's reports, and the bets of the crowd."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import ConfigDict, Field, with_config

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.model.bridge import Bridge
from mesa_llm.records import Event
from mesa_llm.text import clip, tone
from mesa_llm.tools.validation import NO_FLAG
from mesa_llm_models.economy.world import Economy, Value
from mesa_llm_models.market.world import PredictionMarkets
from mesa_llm_models.social.world import SocialWorld
from mesa_llm_models.three_worlds.agents import Claim, own_words

PAPER = "Town Gazette"
CROWD = "The crowd"

METRICS = ("employment_rate", "avg_price")
"""Metrics of the economy that the paper reports."""

NEWS = ("price_move", "market_resolved", "policy_change", "metric_change", "news")
"""Kinds of events that the paper reports: all but posts."""

MIN_TONE = 0.05
"""Minimum absolute tone of a post that the crowd bets on; VADER's own limit of a neutral text."""

SCHEDULE = "schedule"
"""Source of scheduled events."""

Setting = Annotated[float, Field(allow_inf_nan=False), NO_FLAG] | str
"""Value of a variable of the economy."""


@with_config(ConfigDict(extra="forbid"))
class Shock(TypedDict):
    """One event from outside the town."""

    step: Annotated[int, Field(ge=1)]
    """Step in which everyone hears of it."""

    text: Annotated[str, Field(min_length=1, max_length=400)]
    """Text of the event."""

    variable: NotRequired[str | None]
    """Variable of the economy that it sets, if any: `tax_rate`, `minimum_wage` or another."""

    value: NotRequired[Setting | None]
    """Value that it sets the variable to."""


STATE_TAX: Shock = {
    "step": 7,
    "text": "The state levies a tax of 30% on every sale, from now on.",
    "variable": "tax_rate",
    "value": 0.3,
}
"""Shock if the scenario names none."""


def shock_event(shock: Shock) -> Event:
    """Return a shock as an event: a `policy_change` if it sets a variable, else `news`."""
    text, variable = shock["text"], shock.get("variable")
    if variable is None:
        return Event(SCHEDULE, "news", {"text": text}, text, shock["step"])
    policy = f"{variable}, set from outside"
    facts = {"policy": policy, "description": text, "variable": variable, "value": shock.get("value")}
    return Event(SCHEDULE, "policy_change", facts, text, shock["step"])


def check_shocks(shocks: Iterable[Shock]) -> None:
    """Check the variables set by shocks.

    Raises:
        ConfigError: If one has only one of variable and value, or a value that the economy refuses.
    """
    for shock in shocks:
        variable, value = shock.get("variable"), shock.get("value")
        if (variable is None) != (value is None):
            raise ConfigError(f"shock {dict(shock)}: give both variable and value, or neither")
        if variable is not None and value is not None:
            checked_variables({variable: value})


def checked_variables(variables: Mapping[str, Value]) -> dict[str, Value]:
    """Check variables of the economy by setting them in an empty one.

    Returns:
        The variables as the economy holds them.

    Raises:
        ConfigError: If the economy has no such variable, or refuses its value.
    """
    trial = Economy()
    own = trial.enter(1)
    for name, value in variables.items():
        try:
            trial.rules.enact(own, name, "", name, value)
        except ToolError as refusal:
            raise ConfigError(f"variable {name!r}: {refusal}") from None
    return dict(trial.state.variables)


class Crossings:
    """Effects of the news of each world on the others.

    Attributes:
        paper: Account id of the paper, which writes on the social network and comments on markets.
        crowd: Account id of the crowd, which bets.
        reports: Texts of the news published so far; quoting them is no argument.
        n_reports: Number of reports of the paper on the social network.
        n_bets: Number of bets of the crowd.
    """

    def __init__(
        self,
        social: SocialWorld,
        market: PredictionMarkets,
        economy: Economy,
        claims: Mapping[str, Claim],
        *,
        account: int,
        crowd_dollars: float,
    ) -> None:
        """Open the accounts of the paper and the crowd.

        Args:
            social: The social network.
            market: The prediction market.
            economy: The economy.
            claims: Market → its question.
            account: Unused agent id for the paper; the crowd gets the next one.
            crowd_dollars: Maximum number of dollars that the crowd bets on each viral post.
        """
        self.social, self.market, self.economy, self.claims = social, market, economy, claims
        self.paper, self.crowd, self.crowd_dollars = account, account + 1, crowd_dollars
        self.n_reports = self.n_bets = 0
        self.reports: dict[str, None] = {}
        social.sign_up(self.paper, PAPER)
        market.names |= {self.paper: PAPER, self.crowd: CROWD}

    def connect(self, bridge: Bridge, *, crosses: bool) -> None:
        """Connect the worlds to a bridge.

        Args:
            bridge: The bridge.
            crosses: Whether news crosses; if not, only scheduled policies act, on the economy.
        """
        bridge.connect("policy_change", self.enact)
        for kind in NEWS:
            bridge.connect(kind, self.record)
        if not crosses:
            return
        for kind in NEWS:
            bridge.connect(kind, self.report)
        for kind in ("policy_change", "metric_change", "viral_post", "news"):
            bridge.connect(kind, self.remark)
        bridge.connect("viral_post", self.bet)

    def record(self, event: Event) -> None:
        """Record the text of the news."""
        if event.text:
            self.reports[event.text] = None

    def enact(self, event: Event) -> None:
        """Enact a scheduled policy in the economy; it replaces those that set the same variable."""
        facts, economy = event.facts, self.economy
        if event.source != SCHEDULE or facts.get("variable") is None:
            return
        policies = economy.state.policies
        policies[:] = [policy for policy in policies if policy.variable != facts["variable"]]
        first = next(iter(economy.state.participants.values()))
        economy.rules.enact(first, facts["policy"], facts["description"], facts["variable"], facts["value"])

    def report(self, event: Event) -> None:
        """Report an event on the social network."""
        if is_newsworthy(event):
            self.social.create_post(self.paper, event.text)
            self.n_reports += 1

    def remark(self, event: Event) -> None:
        """Comment on an event under the questions that it concerns."""
        if not is_newsworthy(event):
            return
        measures = ("opinion",) if event.kind == "viral_post" else METRICS
        measures = (event.facts["metric"],) if event.kind == "metric_change" else measures
        for market_id in self.open_markets(*measures):
            self.market.comment_on_market(self.paper, market_id, clip(event.text, 300))

    def bet(self, event: Event) -> None:
        """Place the crowd's bet on the stance of a viral post, within its cash."""
        stance = tone(own_words(str(event.facts.get("text", "")), self.reports))
        dollars = min(self.crowd_dollars, self.market.ledger.portfolio(self.crowd).cash)
        if abs(stance) < MIN_TONE or dollars <= 0:
            return
        for market_id in self.open_markets("opinion"):
            try:
                self.market.buy_shares(self.crowd, market_id, "yes" if stance > 0 else "no", dollars)
            except ToolError:  # a limit of the market: the crowd does not bet
                return
            self.n_bets += 1

    def open_markets(self, *measures: Any) -> list[str]:
        """Return the ids of the open markets on the given measures."""
        markets = self.market.ledger.markets
        return [key for key, claim in self.claims.items() if claim.measure in measures and markets[key].is_open]


def is_newsworthy(event: Event) -> bool:
    """Check whether the paper reports an event: any but a change of a metric without a market."""
    return event.kind != "metric_change" or event.facts.get("metric") in METRICS
