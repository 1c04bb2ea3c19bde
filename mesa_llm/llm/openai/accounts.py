"""Recognises an account without money, or without quota for hours, in every provider's way of saying it.

What says it by its form goes first: a status, a code, the id of a quota, the time at which a limit is reset. Words come
last, and only where they are not those of the prompt, which an error may quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

LONG_WAIT_S = 600.0
"""Wait, in seconds, from which a limit is none of the moment: a run stops, and can be resumed."""

Lack = Literal["money", "quota"]
"""What an account has none of: money, or requests and tokens until a limit is reset."""

_PAYMENT_REQUIRED = 402

NO_LIMIT = re.compile(r"\blimit:? 0(?!\.?\d)", re.IGNORECASE)
"""A limit of nothing: the account has no access to the model until somebody pays."""

ZERO_LIMIT = "limit_of_zero"
"""Code that stands for it; its message may be too long to be quoted whole."""

_MONEY_CODES = frozenset(
    {
        "limitofzero",
        "insufficientquota",
        "insufficientbalance",
        "insufficientcredits",
        "insufficientcredit",
        "insufficientfunds",
        "insufficientuserquota",
        "balanceinsufficient",
        "billinghardlimitreached",
        "billinglimitreached",
        "billingnotactive",
        "billingerror",
        "billingdisabled",
        "accountnotactive",
        "accountoverdueerror",
        "accountoverdue",
        "accountinarrears",
        "arrearage",
        "inarrears",
        "creditlimit",
        "creditlimitexceeded",
        "creditsexhausted",
        "creditexhausted",
        "exceededcurrentquotaerror",
        "exceededcurrentquota",
        "freequotaexhausted",
        "freetieronly",
        "allocationquotafreetieronly",
        "failedoperationfreeresourcepackexhausted",
        "failedoperationresourcepackexhausted",
        "resourcepackexhausted",
        "notenoughbalance",
        "outofcredits",
        "paymentrequired",
        "prepaidbilloverdue",
        "postpaidbilloverdue",
        "setlimitexceeded",
        "spendlimitexceeded",
        "spendinglimitexceeded",
        "spendinglimitreached",
    }
)
"""Codes and types of errors of an account without money, without signs and in lower case."""

_MONEY_NUMBERS = frozenset({"1113", "1008", "30001", "1004008"})
"""Numbers of such errors: Zhipu, MiniMax, SiliconFlow."""

_QUOTA_NUMBERS = frozenset({"17", "19", "3036", "1304", "1308", "1310"})
"""Numbers of errors of a spent daily or total quota: Baidu, Cloudflare, Zhipu."""

_LONG_PERIOD = (
    r"per[ _-]?(?:calendar[ _-]?)?(?:day|week|month)|(?<![a-z])(?:daily|weekly|monthly)|\b(?:RPD|TPD|RPMonth)\b|"
    r"/ ?(?:d|day|week|month)\b|per (?:24 ?h|24 hours|86400)|\b(?:to|this )(?:day|month|week)(?:'s)?\b|tomorrow|"
    r"per-?day|PerDay|PerMonth|ByDay\b|"
    r"\u6bcf\u65e5|\u6bcf\u5929|\u5f53\u65e5|\u5f53\u5929|\u4eca\u65e5|\u6bcf\u6708|\u5f53\u6708|\u65e5\u9650"
)
_SHORT_PERIOD = (
    r"per[ _-]?(?:min|sec|minute|second)|PerMinute|PerSecond|\b(?:RPM|TPM|RPS|QPS)\b|"
    r"/ ?(?:m|min|minute|s|sec|second)\b|concurren|\u6bcf\u5206\u949f|\u6bcf\u79d2"
)
_PERIOD = re.compile(rf"(?P<long>{_LONG_PERIOD})|(?P<short>{_SHORT_PERIOD})", re.IGNORECASE)
"""The period of a limit: days and more, or minutes and less."""

_LIMITED = re.compile(
    r"limit|quota|exceed|exhaust|used up|too many|allowance|reached|\u9650|\u989d\u5ea6|\u914d\u989d|\u8d85\u51fa",
    re.IGNORECASE,
)
"""Words of messages about a limit."""

_OUT_OF_QUOTA = re.compile(
    r"(?:usage|token|request|quota|api|call)s?\W{1,3}(?:\w+\W+){0,3}?limits?\b.{0,80}?"
    r"\b(?:regain|until|resets? (?:on|at)|upgrade)"
    r"|(?:daily|monthly|weekly)\W+(?:\w+\W+){0,3}?(?:limit|quota|allowance|allocation|usage)s?\b"
    r"|(?:limit|quota|allowance)s?\W+(?:\w+\W+){0,4}?(?:per (?:day|month)|daily|monthly)"
    r"|\u65e5\u9650\u989d|\u4eca\u65e5.{0,8}(?:\u989d\u5ea6|\u6b21\u6570)",
    re.IGNORECASE,
)
"""A spent quota in words, whatever the status."""

_OUT_OF_MONEY = re.compile(
    r"credit balance|insufficient[ _](?:account )?(?:balance|credits?|funds|quota)|"
    r"(?:balance|credits?|funds)\b.{0,30}\b(?:is|are|too|has|have|was)\b.{0,20}"
    r"(?:low|insufficient|exhausted|depleted|expired|used up|empty|negative|run out|not enough)|"
    r"(?:no|not enough|out of|insufficient|zero|negative|exhausted|used (?:all|up)(?: of| available| your| its| the)*)"
    r"\W+(?:\w+\W+){0,2}?(?:credits?\b|account balance|funds\b|prepaid)|n't have any credits|"
    r"(?:top|charge)[ -]?up (?:your|the|at)|recharge|purchase (?:more |additional )?credits|"
    r"(?:add|buy) (?:\w+ )?credits|"
    r"billing (?:hard )?limit|spending (?:limit|cap)|spend limit|payment (?:is )?required|"
    r"(?:overdue|outstanding) (?:balance|payment|bill)|billing (?:is not|must be|has not been|to be) \w+|"
    r"account .{0,40}(?:overdue|in arrears|not active due to billing)|"
    r"(?:exceeded|reached) (?:\w+ ){0,4}included credits|exhausted (?:\w+ ){0,3}free (?:trial )?quota|"
    r"key limit exceeded|"
    r"free (?:trial |tier )?(?:quota|credits?|allowance).{0,30}(?:exhausted|used up|expired)|"
    r"\u4f59\u989d\u4e0d\u8db3|\u6b20\u8d39|\u5145\u503c|\u8d44\u6e90\u5305|\u8d26\u6237\u4f59\u989d|"
    r"\u6b8b\u9ad8\u304c\u4e0d\u8db3|\uc794\uc561.{0,6}\ubd80\uc871",
    re.IGNORECASE,
)
"""An account without money, in words."""

_CHECK_BILLING = re.compile(r"check your plan and billing", re.IGNORECASE)
"""What providers also say of a limit of the moment."""

_OF_THE_MOMENT = re.compile(
    r"rate_?limit|limit_(?:requests|tokens|burst)|too_?many_?requests|throttling", re.IGNORECASE
)
"""Codes of such a limit."""

_FOR_WORDS = frozenset({400, 401, 403, 406, 412, 413, 422, 429, 502})
"""Statuses whose words may be about an account."""


def lack_of(
    status: int, text: str, codes: Iterable[str] = (), wait_s: float | None = None, prompt: str = ""
) -> Lack | None:
    """Return what an account lacks, according to an error; None if the error is another.

    Args:
        status: HTTP status; 502 for an error within a response with a status of success.
        text: The endpoint's message.
        codes: Codes, types, reasons and ids of quotas that stand in the error.
        wait_s: Seconds that the endpoint asks to wait; None: it does not say.
        prompt: What was sent, whose words in a message say nothing about the account.
    """
    codes = list(codes)
    if status == _PAYMENT_REQUIRED or any(_letters(code) in _MONEY_CODES or code in _MONEY_NUMBERS for code in codes):
        return "money"
    periods = {period for code in codes if (period := _period_in(code))}
    is_limit = status in (403, 429, 502)
    if "long" in periods or (is_limit and (not _QUOTA_NUMBERS.isdisjoint(codes) or (wait_s or 0.0) > LONG_WAIT_S)):
        return "quota"
    period = _period_in(text)
    if status not in _FOR_WORDS or "short" in periods or (status == 429 and period == "short"):
        return None
    is_brief = wait_s is not None or any(map(_OF_THE_MOMENT.match, codes))
    if says(_OUT_OF_MONEY, text, prompt) or (not is_brief and says(_CHECK_BILLING, text, prompt)):
        return "money"
    is_spent = says(_OUT_OF_QUOTA, text, prompt) or (status == 429 and period == "long" and _LIMITED.search(text))
    return "quota" if is_spent else None


def _period_in(text: str) -> str:
    """Return whether the first period that a text names is `long` or `short`; empty if it names none."""
    period = _PERIOD.search(text)
    return "" if period is None else str(period.lastgroup)


BESIDE = 20
"""Number of characters on one side of a match by which a quotation of the prompt is known."""

MIN_BESIDE = 8
"""Minimum number of them, on one side or on both."""


def says(pattern: re.Pattern[str], text: str, prompt: str) -> bool:
    """Check whether a message says something in words of its own, and not in a quotation of the prompt.

    Args:
        pattern: What it may say.
        text: The message, on one line.
        prompt: The texts that were sent.
    """
    return any(not (prompt and _is_quoted(match, prompt)) for match in pattern.finditer(text))


def _is_quoted(match: re.Match[str], prompt: str) -> bool:
    text, start, end = match.string, match.start(), match.end()
    around = text[max(0, start - MIN_BESIDE // 2) : end + MIN_BESIDE // 2]
    for window in (around, text[max(0, start - BESIDE) : end], text[start : end + BESIDE]):
        if len(window) - (end - start) >= MIN_BESIDE and window in prompt:
            return True
    return False


def _letters(code: str) -> str:
    return re.sub(r"[\W_]", "", code).lower()


def lack_text(lack: Lack, account: str, wait_s: float | None) -> str:
    """Say whose account lacks what, and what to do about it.

    Args:
        lack: What it lacks.
        account: Where the account is: an address or a provider.
        wait_s: Seconds until there is more; None: that is not known.
    """
    if lack == "money":
        return (
            f"the account of your API key at {account} has no money or credit left: check the account's balance and "
            "top it up, or name another key or model. What was answered is kept: run the same again to go on"
        )
    until = "it is reset, often tomorrow" if wait_s is None or wait_s <= LONG_WAIT_S else f"it is reset, {_in(wait_s)}"
    return (
        f"the account of your API key at {account} has used up its quota: wait until {until}, raise the quota, or name "
        "another key or model. What was answered is kept: run the same again to go on"
    )


def _in(wait_s: float) -> str:
    minutes = round(wait_s / 60)
    if minutes < 120:
        return f"in {minutes} minutes"
    return f"in {round(minutes / 60)} hours" if minutes < 60 * 48 else f"in {round(minutes / 60 / 24)} days"
