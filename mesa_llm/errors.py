"""The exceptions of mesa_llm, and who reads each of them; and what is missing of a plain install.

Subclasses are indented under their base class:

    MesaLLMError
      ConfigError            a person: something was set up wrongly; says what to change
        AccessRefused        a person: an endpoint rejects key, model or address, or the account is out of money
        NeedsLog             a person: a light run, which keeps no replies, would ask a language model
        NoProbabilities      a person: the language model returns no probabilities of its answers
        ReplayError          a person: the recording lacks a reply that the run requests
      BudgetExceeded         a person: a budget ended the run cleanly; it can be resumed
      Stopped                a person: a step was stopped while agents decided; the next step() resumes it
      AllDecisionsFailed     a person: the run is over, and every decision failed
      DecisionError          a person: only with `on_error="raise"`, at the end of the step
      ToolError              the language model: an action or tool was refused, and why
      ToolBroken             the engine: a tool raised another exception while an agent decided
      ParseError             the engine: a reply could not be used; the message tells the model why
      TransportError         the engine: no reply
        RateLimited          the engine: wait, then retry
        ServerError          the engine: retry (5xx, closed or hung connection)
          Loading            the engine: wait until the model is loaded, then retry
        BadReply             the engine: the response contains no reply (too long, not JSON)
        Refused              the engine: the endpoint rejects this request (4xx)
          Filtered           the engine: a content filter of the provider rejects what its prompt says
          HumanTimeout       the engine: a person did not decide in time, or no person plays the agent
          OutsideSurrogate   the engine: a request is outside of what a surrogate mind was fitted to
"""

from __future__ import annotations

from importlib.util import find_spec
from types import MappingProxyType
from typing import Any


class MesaLLMError(Exception):
    """Base class of all exceptions that this package raises."""

    usage: Any = None
    """`Usage` of the failed request, if the endpoint reported it; else None."""


class ConfigError(MesaLLMError):
    """A setting or input is invalid; the message says what to change."""


class AccessRefused(ConfigError):
    """An endpoint rejects the key, the model or the address, or the account is out of money."""

    def __init__(self, text: str, *, is_out_of_money: bool = False) -> None:
        """Store the reason.

        Args:
            text: Error of the endpoint, and what to do about it.
            is_out_of_money: Whether the account is out of money.
        """
        super().__init__(text)
        self.is_out_of_money = is_out_of_money


class NeedsLog(ConfigError):
    """A run that keeps no log would ask a language model, whose replies are paid for."""


class NoProbabilities(ConfigError):
    """A language model returns no probabilities of its answers, which were asked for."""


class ReplayError(ConfigError):
    """A replay made a request that has no recorded reply."""


class BudgetExceeded(MesaLLMError):
    """A budget of calls, tokens or dollars is used up; starting the run again resumes it."""


class Stopped(MesaLLMError):
    """A step was stopped while agents decided; it is not counted, and the next `step()` resumes it."""


class AllDecisionsFailed(MesaLLMError):
    """Every decision of a run failed; the message gives the reason for the first."""


class DecisionError(MesaLLMError):
    """A decision failed in a model with `on_error="raise"`, or most decisions of a run that was to be shipped did."""


class ToolError(MesaLLMError):
    """An action or a tool was refused; the language model reads the message."""


class ToolBroken(MesaLLMError):
    """A tool raised an exception other than `ToolError`, so the decision of the calling agent failed."""


class ParseError(MesaLLMError):
    """A reply could not be turned into a decision or an answer; the message tells the model why."""

    def __init__(self, text: str, *, kind: str = "Unparsed", partial: object = None) -> None:
        """Store the reason.

        Args:
            text: The reason.
            kind: Kind of the failure if repair fails: `Unparsed`, or `OffList` for an answer that was not an option.
            partial: Decision on the usable part of a sheet, used if the rest cannot be repaired; None: there is none.
        """
        super().__init__(text)
        self.kind, self.partial = kind, partial


class TransportError(MesaLLMError):
    """A language model gave no reply."""

    usage: Any = None
    """`Usage` that the endpoint reported for an unusable reply; None if it reported none."""


class RateLimited(TransportError):
    """The endpoint's rate limit was exceeded (HTTP 429)."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        """Store how long to wait.

        Args:
            text: The error of the endpoint.
            retry_after_s: Its `Retry-After`, in seconds, if it sent one.
        """
        super().__init__(text)
        self.retry_after_s = retry_after_s


class ServerError(TransportError):
    """The endpoint failed, hung or closed the connection; a retry may succeed."""


class Loading(ServerError):
    """The endpoint is still loading the model."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        """Store how long the endpoint expects loading to take.

        Args:
            text: The error of the endpoint.
            retry_after_s: Seconds to wait, if the endpoint states them.
        """
        super().__init__(text)
        self.retry_after_s = retry_after_s


class BadReply(TransportError):
    """The response contains no reply: it is too long, not JSON, or has the wrong structure."""


class Refused(TransportError):
    """The endpoint rejects this request; a retry does not help."""


class Filtered(Refused):
    """A content filter of the provider rejects what the prompt says; nothing was asked of the language model."""


class HumanTimeout(Refused):
    """A person did not decide in time, or no person plays this agent; `on_error="rule"` uses the rule twin instead."""


class OutsideSurrogate(Refused):
    """A request is outside of what a surrogate mind was fitted to, and it has no language model to ask instead."""


EXTRAS = MappingProxyType(
    {
        "offline": ("solara_assets",),
        "analysis": ("sklearn", "threadpoolctl", "SALib", "bayes_opt"),
        "embeddings": ("safetensors", "wordllama"),
    }
)
"""Extra → the modules that it installs and a plain install lacks; `all` has those of all."""


def missing_in(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed.

    Args:
        extra: Name of the extra.
    """
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def require_extra(extra: str, purpose: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: Name of the extra.
        purpose: What needs it, as the subject of the message.

    Raises:
        ConfigError: If one of its packages is missing.
    """
    if missing := missing_in(extra):
        raise ConfigError(
            f"{purpose}: {', '.join(missing)} not installed; `pip install 'mesa-llm-worlds[{extra}]'` has what it needs"
        )
