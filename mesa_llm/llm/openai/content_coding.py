"""Unpacks responses that an endpoint compresses although nobody has asked for it.

Some gateways compress whatever they pass on. What a header names is unpacked, and so is what only looks compressed; a
header that names no compression, such as `utf-8`, is ignored.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from mesa_llm.errors import BadReply

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of what is compressed so."""

_NAMES = {"x-gzip": "gzip", "x-compress": "compress", "zstandard": "zstd", "brotli": "br"}
"""Spellings of content codings → their registered names."""

_UNREAD = ("br", "zstd", "compress", "dcb", "dcz", "exi", "pack200-gzip", "lzma", "xz", "bzip2", "snappy", "lz4")
"""Content codings that need a package, or that nothing here reads."""

MAX_CODINGS = 4
"""Maximum number of codings of one body, each applied to what the one before gave."""

MAX_MEMBERS = 64
"""Maximum number of members of a gzip body that are read."""


def unpacked(body: bytes, header: str, max_bytes: int) -> bytes:
    """Unpack the body of a response; a plain one is returned unchanged.

    Args:
        body: The body.
        header: Value of the header `Content-Encoding`; empty: there is none.
        max_bytes: Maximum number of bytes, unpacked; of more, only so many and one are returned.

    Raises:
        BadReply: If it is compressed in a way that cannot be read; the message names it.
        ConnectionError: If it is damaged.
    """
    if not body:
        return body
    codings = [_NAMES.get(name.strip().lower(), name.strip().lower()) for name in header.split(",") if name.strip()]
    for coding in reversed(codings[-MAX_CODINGS:]):
        if coding == "gzip" and body.startswith(GZIP):
            body = _inflated(body, "gzip", max_bytes)
        elif coding == "deflate" and body[:1] not in b"{[":
            body = _inflated(body, "deflate", max_bytes)
        elif coding in _UNREAD and body[:1] not in b"{[":
            body = _by_package(body, coding, max_bytes)
    if body.startswith(GZIP):
        return _inflated(body, "gzip", max_bytes)
    return _by_package(body, "zstd", max_bytes) if body.startswith(ZSTD) else body


def _inflated(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Unpack gzip, also of several members, or deflate, with or without the header of zlib."""
    found = b""
    raw = coding == "deflate" and not (body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0)
    for _ in range(MAX_MEMBERS):
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        try:
            found += unpacker.decompress(body, max_bytes + 1 - len(found))
        except zlib.error as error:
            raise ConnectionError(f"the {coding} of the response is damaged: {error}") from None
        if not unpacker.eof and len(found) <= max_bytes:
            raise ConnectionError(f"the {coding} of the response was cut after {len(body)} bytes")
        body = unpacker.unused_data
        if len(found) > max_bytes or not body.startswith(GZIP):
            break
    return found


def _by_package(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Unpack what the standard library does not, if a package that does is installed.

    Raises:
        BadReply: If none is.
        ConnectionError: If the body is damaged.
    """
    for name, unpack in _PACKAGES.get(coding, {}).items():
        try:
            package = import_module(name)
        except ImportError:
            continue
        try:
            return unpack(package, body, max_bytes)
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            raise ConnectionError(f"the {coding} of the response is damaged: {error}") from None
    advice = f", or `pip install {_ADVICE[coding]}`" if coding in _ADVICE else ""
    raise BadReply(
        f"the endpoint compresses its responses as {coding!r} though nobody asked for it; turn that off there{advice}"
    )


def _brotli(package: Any, body: bytes, max_bytes: int) -> bytes:
    return package.Decompressor().process(body, output_buffer_limit=max_bytes + 1)


def _zstd(package: Any, body: bytes, max_bytes: int) -> bytes:
    return package.ZstdDecompressor().stream_reader(body).read(max_bytes + 1)


def _zstd_of_python(package: Any, body: bytes, max_bytes: int) -> bytes:
    return package.ZstdDecompressor().decompress(body, max_bytes + 1)


_PACKAGES: dict[str, dict[str, Callable[[Any, bytes, int], bytes]]] = {
    "br": {"brotli": _brotli},
    "zstd": {"compression.zstd": _zstd_of_python, "zstandard": _zstd},
}
"""Content coding → module that unpacks it → how that is called."""

_ADVICE = {"br": "brotli", "zstd": "zstandard"}
"""Content coding → package to install."""
