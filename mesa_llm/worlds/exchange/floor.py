"""Whose turn it is: the stages of a day, who may act in each, and what the end of a stage brings."""

from __future__ import annotations

from mesa_llm.errors import ToolError
from mesa_llm.world import Draws
from mesa_llm.worlds.exchange.accounts import Account
from mesa_llm.worlds.exchange.forum import Forum
from mesa_llm.worlds.exchange.market import Market
from mesa_llm.worlds.exchange.news import Happening
from mesa_llm.worlds.exchange.schedule import Calendar, Moment, Stage


class Floor:
    """Leads the traders of a market through its days."""

    def __init__(self, market: Market, calendar: Calendar, draws: Draws) -> None:
        """Open on the morning of day 1.

        Args:
            market: What is traded, and by whom.
            calendar: Days and sessions.
            draws: Source of the acting order, drawn anew for every session.
        """
        self.market = market
        self.calendar = calendar
        self.forum = Forum()
        self.now = Moment(1, "loan", 0)
        self.turn_order: tuple[int, ...] = ()
        self._draws = draws
        self._acted: set[int] = set()
        self._open_stage()

    def end_stage(self) -> list[Happening]:
        """End the present stage and begin the next.

        Returns:
            Prices that moved, forced sales and leavings, and policies that begin.
        """
        happenings: list[Happening] = []
        if self.now.stage == "trade":
            happenings += [close for close in self.market.close_session(self.now) if close.price != close.before]
        elif self.now.stage == "post":
            self.forum.turn()
        self.now = self.calendar.after(self.now)
        return happenings + self._open_stage()

    def refusal(self, actor: int, stage: Stage) -> str | None:
        """Say why a trader may not act as one does in a stage; None if it may."""
        account = self.market.accounts.get(actor)
        if account is None:
            return f"there is no trader {actor} on this exchange."
        if account.has_left:
            return "you are insolvent and have left the exchange."
        if stage != self.now.stage:
            return f"this is done in the stage {stage!r}, and now is {self.now.stage!r}."
        if actor in self._acted:
            return "you have already acted in this stage; wait for the next one."
        if stage == "loan" and account.loan_limit <= 0:
            return "you owe as much as you had at the start; you may not borrow more."
        return None

    def in_turn(self, actor: int, stage: Stage) -> Account:
        """Give the account of a trader who may act now.

        Raises:
            ToolError: If it may not.
        """
        refusal = self.refusal(actor, stage)
        if refusal is not None:
            raise ToolError(refusal)
        return self.market.accounts[actor]

    def has_acted(self, actor: int) -> None:
        """Note that a trader has used its turn in this stage."""
        self._acted.add(actor)

    def _open_stage(self) -> list[Happening]:
        """Begin a stage: settle what is due in the morning, and say who acts, in which order."""
        self._acted = set()
        happenings = self._open_day() if self.now.stage == "loan" else []
        present = [] if self.now.stage == "closed" else self.market.remaining
        if self.now.stage == "loan":
            present = [account for account in present if account.loan_limit > 0]
        elif self.now.stage == "trade":
            places = list(range(len(present)))
            self._draws.shuffle(places)
            present = [present[place] for place in places]
        self.turn_order = tuple(account.trader for account in present)
        return happenings

    def _open_day(self) -> list[Happening]:
        """Settle what is due, and announce the day's policies on the forum."""
        settled, begun = self.market.open_day(self.now.day)
        for policy in begun:
            self.forum.announce(self.now.day, policy.text)
        return [*settled, *begun]
