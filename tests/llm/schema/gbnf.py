"""Reads the grammars that we write back, apart from llama.cpp: writes texts at random, and recognises them."""

from __future__ import annotations

import random
import re

TOKEN = re.compile(
    r"""(?P<literal>"(?:\\.|[^"\\])*")|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<rule>[a-z]\w*)|(?P<sign>[(|)])"""
    r"|(?P<often>\?|\*|\{\d+(?:,\d*)?\})"
)
TRICKY = 'aZ0123456789 \\"/\n\t\x7f\x80é\u2028日😀{}[],:'
"""Characters that a text is tried with; a set takes those it allows."""


class Grammar:
    """One of our grammars, read back: it can write texts at random, and recognise them."""

    def __init__(self, grammar: str) -> None:
        self.rules = dict(line.split(" ::= ", 1) for line in grammar.strip("\n").split("\n"))

    def accepts(self, text: str) -> bool:
        return re.fullmatch(self.pattern("root"), text) is not None

    def pattern(self, rule: str) -> str:
        """Give a rule as a regular expression; our grammars never recurse."""
        parts: list[str] = []
        for token in TOKEN.finditer(self.rules[rule]):
            match token.lastgroup:
                case "literal":
                    parts.append(f"(?:{re.escape(unquoted(token.group()))})")
                case "rule":
                    parts.append(f"(?:{self.pattern(token.group())})")
                case _:
                    parts.append(token.group().replace("(", "(?:"))
        return "".join(parts)

    def write(self, rng: random.Random) -> str:
        """Write a text that the grammar accepts."""
        return self.written([("rule", "root")], rng)

    def written(self, tokens: list[tuple[str, str]], rng: random.Random) -> str:
        tokens, text = list(rng.choice(split_at_bars(tokens))), ""
        while tokens:
            atom, least, most = take_atom(tokens)
            text += "".join(self.one(atom, rng) for _ in range(rng.randint(least, min(most, least + 3))))
        return text

    def one(self, atom: list[tuple[str, str]], rng: random.Random) -> str:
        kind, text = atom[0]
        if kind == "rule":
            return self.written(tokens_of(self.rules[text]), rng)
        if kind == "literal":
            return unquoted(text)
        return rng.choice(re.findall(text, TRICKY)) if kind == "set" else self.written(atom[1:-1], rng)


def unquoted(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal[1:-1])


def tokens_of(body: str) -> list[tuple[str, str]]:
    return [(str(token.lastgroup), token.group()) for token in TOKEN.finditer(body)]


def split_at_bars(tokens: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    parts: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token[1], 0)
        if depth == 0 and token[1] == "|":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def take_atom(tokens: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], int, int]:
    """Take one atom off the front, with how often it may come."""
    size = depth = 0
    while size == 0 or depth > 0:
        depth += {"(": 1, ")": -1}.get(tokens[size][1], 0)
        size += 1
    atom = tokens[:size]
    del tokens[:size]
    if not tokens or tokens[0][0] != "often":
        return atom, 1, 1
    often = tokens.pop(0)[1]
    least, comma, most = {"?": "0,1", "*": "0,"}.get(often, often.strip("{}")).partition(",")
    return atom, int(least), int(most or int(least) + 3 * len(comma))
