"""Responses that an endpoint compresses unasked are read within the same bounds as plain ones."""

from __future__ import annotations

import gzip
import zlib

import pytest

from mesa_llm.errors import BadReply
from mesa_llm.llm.openai.connection import Response
from mesa_llm.llm.openai.content_coding import unpacked
from tests.llm.openai.test_connection import ask_server, sending

PLAIN = b'{"choices": []}'
RAW = zlib.compressobj(wbits=-15)


def response(body: bytes, coding: str, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status.encode(),
        coding.encode(),
        len(body),
        body,
    )


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(PLAIN, mtime=0)),
        ("X-GZip", gzip.compress(PLAIN, mtime=0)),
        ("deflate", zlib.compress(PLAIN)),
        ("deflate", RAW.compress(PLAIN) + RAW.flush()),
        ("deflate, gzip", gzip.compress(zlib.compress(PLAIN), mtime=0)),
        ("gzip", gzip.compress(PLAIN[:5], mtime=0) + gzip.compress(PLAIN[5:], mtime=0)),
        ("", gzip.compress(PLAIN, mtime=0)),
        ("gzip", PLAIN),
        ("utf-8", PLAIN),
        ("br", PLAIN),
    ],
)
def test_a_compressed_response_is_unpacked(coding: str, body: bytes) -> None:
    assert unpacked(body, coding, 1_000) == PLAIN
    assert unpacked(b"", coding, 1_000) == b""


def test_a_response_that_was_compressed_unasked_is_a_reply() -> None:
    (reply,), _ = ask_server(sending(response(gzip.compress(PLAIN, mtime=0), "gzip")))
    assert isinstance(reply, Response)
    assert reply.body == PLAIN


@pytest.mark.parametrize(
    ("body", "coding", "why"),
    [
        (gzip.compress(bytes(50_000_000)), "gzip", "the reply is longer than"),
        (gzip.compress(PLAIN, mtime=0)[:-9], "gzip", "the gzip of the response was cut"),
        (b"\x1f\x8b" + b"no gzip at all", "gzip", "the gzip of the response is damaged"),
        (b"\x0b\x02\x80abc\x03", "dcb", "compresses its responses as 'dcb'"),
    ],
)
def test_what_cannot_be_unpacked_says_why(body: bytes, coding: str, why: str) -> None:
    (error,), _ = ask_server(sending(response(body, coding)))
    assert why in str(error)


def test_an_error_that_was_compressed_keeps_its_status() -> None:
    (reply,), _ = ask_server(sending(response(gzip.compress(b"no such model"), "gzip", "404 Not Found")))
    assert isinstance(reply, Response)
    assert (reply.status, reply.body) == (404, b"no such model")
    with pytest.raises(BadReply, match="pip install brotli"):
        unpacked(b"\x0b\x02\x80abc\x03", "br", 1_000)
