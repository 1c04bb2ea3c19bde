"""What can follow the beginning of a text that a grammar allows.

A part that is forced need not be written by a model, and where few tokens can follow, one can be drawn from their
probabilities. Grammars are those of `schema_to_gbnf`, whose rules do not refer to themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(\[(?:[^\]\\]|\\.)*\])|\{(\d+)(,?)(\d*)\}|([\w-]+)|([()|*?])')
_IN_SET = re.compile(r"\\x([0-9A-Fa-f]{2})|\\(.)|([^\\])", re.DOTALL)
_STRUCTURE = re.compile(rb'.*["{}\[\]:,]', re.DOTALL)

MAX_SET = 16
"""Maximum number of characters of a set among which a model chooses; in a larger one, it writes a free text."""


class Literal(NamedTuple):
    """A text as it is."""

    text: bytes


class Characters(NamedTuple):
    """One character of a set."""

    expression: str
    """The set, in the notation of grammars."""

    allowed: frozenset[int]
    """Its ASCII characters."""

    is_free: bool
    """Whether it has so many that a text of them is free."""


class Rule(NamedTuple):
    """What the rule of a name stands for."""

    name: str


class Sequence(NamedTuple):
    """Parts in order."""

    parts: tuple[Node, ...]


class OneOf(NamedTuple):
    """One of several parts."""

    alternatives: tuple[Node, ...]


class Repeat(NamedTuple):
    """A part, several times."""

    part: Node
    low: int
    high: int | None


Node = Literal | Characters | Rule | Sequence | OneOf | Repeat
Stack = tuple[Node, ...]
"""What is still to come, in order; an empty one: the text may end here."""


@dataclass(frozen=True)
class Continuation:
    """What can follow a beginning: the alternatives, each of which starts with a literal or a set."""

    stacks: tuple[Stack, ...]
    rules: Mapping[str, Node]
    rules_text: str

    @staticmethod
    def of(grammar: str) -> Continuation:
        """Return what a grammar allows from the beginning; cached, as many requests share it."""
        return _whole(grammar)

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow."""
        return all(not stack for stack in self.stacks)

    @property
    def is_free(self) -> bool:
        """Whether a free text can go on here, or the text can both end and go on."""
        return any(not stack or (isinstance(stack[0], Characters) and stack[0].is_free) for stack in self.stacks)

    @property
    def grammar(self) -> str:
        """The grammar of what can follow."""
        return f"root ::= {' | '.join(' '.join(map(_written, stack)) for stack in self.stacks)}\n{self.rules_text}"

    def after(self, text: bytes) -> Continuation | None:
        """Return what can follow a further text; None if the text cannot follow."""
        stacks: tuple[Stack, ...] = self.stacks
        for byte in text:
            stacks = tuple(dict.fromkeys(stack for one in stacks for stack in self._advanced(one, byte)))
            if not stacks:
                return None
        return Continuation(stacks, self.rules, self.rules_text)

    def forced(self) -> tuple[bytes, Continuation]:
        """Return the text that must follow, and what can follow that."""
        text, rest = bytearray(), self
        while (byte := rest._only_byte()) is not None:
            text.append(byte)
            advanced = rest.after(bytes([byte]))
            assert advanced is not None
            rest = advanced
        return bytes(text), rest

    def prefilled(self) -> tuple[bytes, Continuation]:
        """Return the text that must follow, as far as a model would have split it into the same tokens.

        It ends with a mark of JSON: within a word, or after a blank that may be part of the next token, a model would
        be pushed off its path.
        """
        text, rest = self.forced()
        if rest.is_over:
            return text, rest
        match = _STRUCTURE.match(text)
        structured = match[0] if match else b""
        if text == structured + b" " and structured and rest._are_digits():
            return text, rest
        advanced = self.after(structured)
        assert advanced is not None
        return structured, advanced

    def _only_byte(self) -> int | None:
        """Return the byte that must follow; None if there are several, or none."""
        byte: int | None = None
        for stack in self.stacks:
            if not stack:
                return None
            first = stack[0]
            if isinstance(first, Literal):
                own = first.text[0]
            elif isinstance(first, Characters) and not first.is_free and len(first.allowed) == 1:
                (own,) = first.allowed
            else:
                return None
            if byte is not None and own != byte:
                return None
            byte = own
        return byte

    def _are_digits(self) -> bool:
        """Check whether a digit must follow."""
        digits = frozenset(b"0123456789")
        return all(
            (isinstance(stack[0], Literal) and stack[0].text[0] in digits)
            or (isinstance(stack[0], Characters) and not stack[0].is_free and stack[0].allowed <= digits)
            for stack in self.stacks
            if stack
        )

    def _advanced(self, stack: Stack, byte: int) -> Iterator[Stack]:
        if not stack:
            return
        first, rest = stack[0], stack[1:]
        if isinstance(first, Literal):
            if first.text[0] == byte:
                yield from _expanded((Literal(first.text[1:]), *rest), self.rules)
        elif isinstance(first, Characters) and byte in first.allowed:
            yield from _expanded(rest, self.rules)


def _expanded(stack: Stack, rules: Mapping[str, Node]) -> Iterator[Stack]:
    """Yield the alternatives of a stack, each of which begins with a literal or a set, or is empty."""
    if not stack:
        yield stack
        return
    first, rest = stack[0], stack[1:]
    match first:
        case Literal(text):
            if text:
                yield stack
            else:
                yield from _expanded(rest, rules)
        case Characters():
            yield stack
        case Rule(name):
            yield from _expanded((rules[name], *rest), rules)
        case Sequence(parts):
            yield from _expanded((*parts, *rest), rules)
        case OneOf(alternatives):
            for one in alternatives:
                yield from _expanded((one, *rest), rules)
        case Repeat(part, low, high):
            if high != 0:
                further = () if high == 1 else (Repeat(part, max(low - 1, 0), None if high is None else high - 1),)
                yield from _expanded((part, *further, *rest), rules)
            if low == 0:
                yield from _expanded(rest, rules)


# -- the notation of grammars


@lru_cache(maxsize=256)
def _whole(grammar: str) -> Continuation:
    lines = [line.partition(" ::= ") for line in grammar.splitlines()]
    rules = {name: _Parser(body).choice() for name, _, body in lines}
    rules_text = "".join(f"{name} ::= {body}\n" for name, _, body in lines if name != "root")
    stacks = tuple(dict.fromkeys(_expanded((rules["root"],), rules)))
    return Continuation(stacks, rules, rules_text)


class _Parser:
    """Reads the body of a rule."""

    def __init__(self, body: str) -> None:
        self._tokens = list(_TOKEN.finditer(body))
        self._index = 0

    def choice(self) -> Node:
        alternatives = [self._sequence()]
        while self._is_next("|"):
            self._index += 1
            alternatives.append(self._sequence())
        return alternatives[0] if len(alternatives) == 1 else OneOf(tuple(alternatives))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._index < len(self._tokens) and not (self._is_next("|") or self._is_next(")")):
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atom(self) -> Node:
        text, characters, _, _, _, name, _ = self._tokens[self._index].groups()
        self._index += 1
        if text is not None:
            return Literal(re.sub(r"\\(.)", r"\1", text).encode())
        if characters is not None:
            return _set(characters)
        if name is not None:
            return Rule(name)
        node = self.choice()  # after an opening bracket
        self._index += 1
        return node

    def _repeated(self, node: Node) -> Node:
        if self._index >= len(self._tokens):
            return node
        _, _, low, comma, high, _, mark = self._tokens[self._index].groups()
        if low is None and mark not in ("*", "?"):
            return node
        self._index += 1
        if low is None:
            return Repeat(node, 0, None if mark == "*" else 1)
        return Repeat(node, int(low), int(high) if high else None if comma else int(low))

    def _is_next(self, mark: str) -> bool:
        return self._index < len(self._tokens) and self._tokens[self._index][7] == mark


def _set(expression: str) -> Characters:
    inner = expression[1:-1]
    is_negated = inner.startswith("^")
    codes = [int(match[1], 16) if match[1] else ord(match[2] or match[3]) for match in _IN_SET.finditer(inner)]
    marks = [match[0] for match in _IN_SET.finditer(inner)]
    start = 1 if is_negated else 0
    found: set[int] = set()
    index = start
    while index < len(codes):
        if index + 2 < len(codes) and marks[index + 1] == "-":
            found.update(range(codes[index], codes[index + 2] + 1))
            index += 3
        else:
            found.add(codes[index])
            index += 1
    allowed = frozenset(range(128)) - found if is_negated else frozenset(code for code in found if code < 128)
    return Characters(expression, allowed, is_negated or len(found) > MAX_SET)


def _written(node: Node) -> str:
    match node:
        case Literal(text):
            escaped = text.decode().replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case Characters(expression):
            return expression
        case Rule(name):
            return name
        case Sequence(parts):
            return f"({' '.join(map(_written, parts))})" if parts else '""'
        case OneOf(alternatives):
            return f"({' | '.join(map(_written, alternatives))})"
        case Repeat(part, low, high):
            times = f"{{{low},{'' if high is None else high}}}"
            return f"({_written(part)}){times}"
