"""Files of results, one JSON object a line: read as far as they can be, and checked against what a provider counts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast

from mesa_llm.errors import MesaLLMError, TransportError
from mesa_llm.llm.batches.protocol import BatchState
from mesa_llm.llm.openai.connection import Response

MAX_RESPONSE_BYTES = 2_000_000
"""Maximum size of the response to one request."""

_KEY = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,200})"')
"""The id in a line that is too long to be read."""


class BatchLines:
    """What the files of a batch say of its requests: the first good response to each, else its first error.

    Attributes:
        of: Id of a request → its response, or the error for which it has none.
        n_again: Number of lines for requests that have one.
    """

    def __init__(self) -> None:
        """Start without a line."""
        self.of: dict[str, Response | MesaLLMError] = {}
        self.n_again = 0

    def read(self, content: bytes, outcome_of: Callable[[Mapping[str, Any]], Response | MesaLLMError]) -> None:
        """Add the lines of a file.

        Args:
            content: The file; lines that are no JSON objects, as one that was cut, count as missing.
            outcome_of: Returns the response in a line, or the error in its place.
        """
        for key, line in _lines_in(content):
            outcome = too_long() if line is None else outcome_of(line)
            self.n_again += key in self.of
            if key not in self.of or (_is_good(outcome) and not _is_good(self.of[key])):
                self.of[key] = outcome

    def are_whole(self, keys: Collection[str], state: BatchState) -> bool:
        """Check whether no line is missing of those that the provider counts.

        Args:
            keys: Ids of all requests of the batch, or of those among them whose responses are wanted.
            state: State of the batch.
        """
        n_missing = sum(key not in self.of for key in keys)
        n_requests = state.n_requests or len(keys)
        n_lines = n_requests if state.n_lines is None else state.n_lines
        return not n_missing or (n_missing <= n_requests - n_lines and len(self.of) >= n_lines)

    def oddities(self, keys: Collection[str], state: BatchState) -> str:
        """Describe lines that nobody has asked for; empty if there are none.

        Args:
            keys: As for `are_whole`.
            state: State of the batch.
        """
        n_foreign = len(set(self.of).difference(keys)) if len(keys) >= (state.n_requests or len(keys)) else 0
        again = f"{self.n_again} more for requests that have one, of which the first good one counts"
        texts = [again] if self.n_again else []
        texts += [f"{n_foreign} for requests that are not in it, which are left out"] if n_foreign else []
        return "; ".join(texts)


def response_of(status: int, document: object) -> Response | MesaLLMError:
    """Return the response to a request as it would have come alone."""
    body = json.dumps(document).encode()
    return too_long() if len(body) > MAX_RESPONSE_BYTES else Response(status, None, body)


def too_long() -> TransportError:
    """Return the error of a reply that is too long; the request is not sent again, as it would be billed again."""
    return TransportError(f"the reply is longer than {MAX_RESPONSE_BYTES} bytes; lower max_tokens")


def _is_good(outcome: Response | MesaLLMError) -> bool:
    return isinstance(outcome, Response) and outcome.status < 300


def _lines_in(content: bytes) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield the id and the object of each line; None where it is too long."""
    for line in content.removeprefix(b"\xef\xbb\xbf").splitlines():
        if len(line) > 2 * MAX_RESPONSE_BYTES:
            if found := _KEY.search(line[:2000]) or _KEY.search(line[-2000:]):
                yield found[1].decode("utf-8", "replace"), None
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and "custom_id" in document:
            fields = cast("dict[str, Any]", document)
            yield str(fields["custom_id"]), fields
