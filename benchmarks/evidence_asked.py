"""Published values that only language models or people can reproduce, each with the command that measures the same."""

from evidence_record import Asked

ASKED: dict[str, list[Asked]] = {}
REPLAYED: list[tuple[str, str, str]] = []
