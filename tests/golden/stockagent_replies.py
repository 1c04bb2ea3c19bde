"""Reads replies as the original program does, so that its recorded runs can be replayed.

Models that play in our own runs act through typed actions and never come here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mesa_llm.errors import ToolError
from mesa_llm_models.stock_agent.world.state import STOCKS, Stock

Fields = dict[str, Any]
"""The fields of one reply, as they were written."""

FORECAST_FIELDS = ("buy_A", "buy_B", "sell_A", "sell_B", "loan")


def read_loan(reply: str, limit: float) -> Fields:
    """Read a loan decision.

    Args:
        reply: Text with one flat JSON object: `loan`, and with "yes" also `loan_type` and `amount`.
        limit: Most that may be borrowed.

    Raises:
        ToolError: If the original refuses it.
    """
    fields = _read_object(reply)
    if _word(fields, "loan", ("yes", "no")) == "no":
        return _without(fields, ("loan_type", "amount"))
    _need(fields, ("loan_type", "amount"))
    if fields["loan_type"] not in (0, 1, 2):
        raise ToolError(f"loan_type is {fields['loan_type']!r}; choose 0, 1 or 2.")
    amount = _number(fields, "amount")
    if amount <= 0 or amount > limit:
        raise ToolError(f"amount is {amount}; it must be above 0 and at most {limit}.")
    return fields


def read_trade(reply: str, cash: float, shares: Mapping[Stock, float]) -> Fields:
    """Read a trading decision.

    Args:
        reply: Text with one flat JSON object: `action_type`, and with "buy" or "sell" also `stock`, `amount`
            and `price`.
        cash: What the trader can pay with.
        shares: What the trader can sell.

    Raises:
        ToolError: If the original refuses it.
    """
    fields = _read_object(reply)
    word = _word(fields, "action_type", ("buy", "sell", "no"))
    if word == "no":
        return _without(fields, ("stock", "amount"))
    _need(fields, ("stock", "amount", "price"))
    stock, amount, price = fields["stock"], fields["amount"], _number(fields, "price")
    if stock not in STOCKS:
        raise ToolError(f"stock is {stock!r}; choose A or B.")
    if price <= 0 or not isinstance(amount, int) or amount <= 0:
        raise ToolError(f"amount {amount!r} at price {price}; give a whole amount and a price, both above 0.")
    if word == "buy" and _cost(amount, price) > cash:
        raise ToolError(f"{amount} shares at {price} cost more than the {cash} cash you have.")
    if word == "sell" and amount > shares[stock]:
        raise ToolError(f"you want to sell {amount} shares of {stock} and have {shares[stock]}.")
    return fields


def read_forecast(reply: str) -> Fields:
    """Read a forecast: five fields, each "yes" or "no".

    Raises:
        ToolError: If the original refuses it.
    """
    fields = _read_object(reply)
    _need(fields, FORECAST_FIELDS)
    if any(said not in ("yes", "no") for said in fields.values()):
        raise ToolError("every value must be yes or no, in small letters.")
    return fields


def first_accepted(replies: Iterable[str], read: Callable[[str], Fields]) -> Fields | None:
    """Give the first of several replies that can be read; None if none can.

    The original asks up to four times for an order. A loan is lost with the first bad reply, as the arguments
    of its later checks are swapped: give only the first reply there.
    """
    for reply in replies:
        try:
            return read(reply)
        except ToolError:
            continue
    return None


def is_acted_on(fields: Fields | None, key: str) -> bool:
    """Tell whether the original acts on an accepted reply: it takes "BUY" or "Yes" for no action."""
    return fields is not None and fields[key] in ("buy", "sell", "yes")


def _read_object(reply: str) -> Fields:
    """Find the one flat JSON object in a reply; blanks and line ends are dropped first, also within words."""
    if reply.count("{") != 1 or reply.count("}") != 1:
        raise ToolError("write exactly one JSON object, without another one inside.")
    written = reply[reply.index("{") : reply.index("}") + 1].replace("\n", "").replace(" ", "")
    try:
        return json.loads(written)
    except ValueError as error:
        raise ToolError(f"this is no JSON: {error}") from None


def _word(fields: Fields, key: str, allowed: tuple[str, ...]) -> str:
    """Give the value of a field in small letters."""
    word = fields.get(key)
    if not isinstance(word, str) or word.lower() not in allowed:
        raise ToolError(f"{key} is {word!r}; choose one of {allowed}.")
    return word.lower()


def _number(fields: Fields, key: str) -> float:
    """Give a number; true and false count as 1 and 0."""
    value = fields[key]
    if not isinstance(value, (int, float)):
        raise ToolError(f"{key} is {value!r}; give a number.")
    return value


def _need(fields: Fields, keys: tuple[str, ...]) -> None:
    missing = [key for key in keys if key not in fields]
    if missing:
        raise ToolError(f"fields are missing: {missing}.")


def _without(fields: Fields, keys: tuple[str, ...]) -> Fields:
    """Give the fields of a "no", which may not say what is not done."""
    spare = [key for key in keys if key in fields]
    if spare:
        raise ToolError(f"leave out {spare} if you do nothing.")
    return fields


def _cost(amount: int, price: float) -> float:
    try:
        return amount * price
    except OverflowError:
        raise ToolError("this amount at this price is more than can be counted.") from None
