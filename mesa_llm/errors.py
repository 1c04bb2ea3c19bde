"""The exceptions of mesa_llm, and who reads each of them.

Each is a kind of the one that it stands under:

    MesaLLMError
      ConfigError            a person: something was set up wrongly; says what to change
        AccessRefused        a person: an endpoint refuses key, model or address, or the account is out of money
        ReplayError          a person: the recording does not hold what the run asks for
      BudgetExceeded         a person: a budget ended the run cleanly; it can be resumed
      Stopped                a person: a step was stopped while agents decided; the next step() goes on with it
      AllDecisionsFailed     a person: the run is over, and every one of its decisions failed
      DecisionError          a person: only with `on_error="raise"`, at the end of the step
      ToolError              the language model: an action or tool was refused, and why
      ToolBroken             the engine: a tool raised something else while an agent decided
      ParseError             the engine: a reply could not be used; the text tells the model why
      TransportError         the engine: no reply came
        RateLimited          the engine: wait, then ask again
        ServerError          the engine: ask again (5xx, cut or hung connection)
          Loading            the engine: wait until the model is loaded, then ask again
        BadReply             the engine: the response holds no reply (too long, not JSON)
        Refused              the engine: the endpoint refuses this one request (4xx)
          HumanTimeout       the engine: a person did not decide in time, or nobody plays the agent
"""

from __future__ import annotations

from typing import Any

from mesa_llm._deprecated import deprecated_name


class MesaLLMError(Exception):
    """Base of all exceptions that this package raises on purpose."""

    usage: Any = None
    """The `Usage` of the request that failed, as far as the endpoint reports it; None: nothing is known of it."""


class ConfigError(MesaLLMError):
    """Something was set up in a way that cannot work; the message says what to change."""


class AccessRefused(ConfigError):
    """An endpoint refuses the key, the model or the address, or the account is out of money."""

    def __init__(self, text: str, *, is_out_of_money: bool = False) -> None:
        """Store what is refused.

        Args:
            text: The error of the endpoint, and what to do.
            is_out_of_money: Whether the account is out of money.
        """
        super().__init__(text)
        self.is_out_of_money = is_out_of_money


class ReplayError(ConfigError):
    """A replay asked for something the recording does not hold."""


class BudgetExceeded(MesaLLMError):
    """A budget of calls, tokens or dollars is spent; starting the same run again continues it."""


class Stopped(MesaLLMError):
    """A step was stopped while agents decided: it has not happened, and the next `step()` goes on with it."""


class AllDecisionsFailed(MesaLLMError):
    """Every decision of a run failed; the message says why the first one did."""


class DecisionError(MesaLLMError):
    """A decision failed in a model with `on_error="raise"`."""


class ToolError(MesaLLMError):
    """An action or a tool was refused; the language model reads the message."""


class ToolBroken(MesaLLMError):
    """A tool raised an error other than a refusal; the decision of the agent that called it has failed."""


class ParseError(MesaLLMError):
    """A reply could not be turned into a decision or an answer; the message tells the model why."""

    def __init__(self, text: str, *, kind: str = "Unparsed", partial: object = None) -> None:
        """Store why.

        Args:
            text: The reason.
            kind: Kind of the failure, if it stays one: `Unparsed`, or `OffList` for an answer that was not possible.
            partial: Decision on the usable part of a sheet, which stands if the rest stays unusable; None: there is
                none.
        """
        super().__init__(text)
        self.kind, self.partial = kind, partial


class TransportError(MesaLLMError):
    """A language model gave no reply."""

    usage: Any = None
    """`Usage` that the endpoint reported although its reply cannot be used; None: it reported none."""


class RateLimited(TransportError):
    """The endpoint asks to be called less often (HTTP 429)."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        """Store how long the endpoint asks to wait.

        Args:
            text: The error of the endpoint.
            retry_after_s: Its `Retry-After`, in seconds, if it sent one.
        """
        super().__init__(text)
        self.retry_after_s = retry_after_s


class ServerError(TransportError):
    """The endpoint failed, hung or cut the connection; asking again may help."""


class Loading(ServerError):
    """The endpoint is still loading the model."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        """Store how long the endpoint expects that to take.

        Args:
            text: The error of the endpoint.
            retry_after_s: Seconds that it asks to wait, if it says so.
        """
        super().__init__(text)
        self.retry_after_s = retry_after_s


class BadReply(TransportError):
    """The response holds no reply: it is too long, not JSON, or of the wrong shape."""


class Refused(TransportError):
    """The endpoint refuses this one request; asking again does not help."""


class HumanTimeout(Refused):
    """A person did not decide in time, or nobody plays this agent; with `on_error="rule"` the rule twin stands in."""


def __getattr__(name: str) -> Any:
    """Return an exception by its old name."""
    return deprecated_name(__name__, name)
