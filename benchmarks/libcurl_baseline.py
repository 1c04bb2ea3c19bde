"""Baseline: the same requests by libcurl alone, all at once over open connections.

Nothing comes closer to the latency. Only the request bodies are ours: there is no event loop and no log, and no reply
is read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pycurl

HEADERS = ["Content-Type: application/json", "Expect:"]


def libcurl_wall_s(base: str, bodies: Sequence[bytes]) -> float:
    """Send bodies to an endpoint twice, each over a connection of its own; return the seconds of the second time."""
    curls = pycurl.CurlMulti()
    curls.setopt(pycurl.M_MAXCONNECTS, len(bodies))
    requests = [_request(base, body) for body in bodies]
    _send(curls, requests)
    begun = time.perf_counter()
    _send(curls, requests)
    return time.perf_counter() - begun


def _request(base: str, body: bytes) -> pycurl.Curl:
    request = pycurl.Curl()
    request.setopt(pycurl.URL, f"{base}/chat/completions")
    request.setopt(pycurl.HTTPHEADER, HEADERS)
    request.setopt(pycurl.POSTFIELDS, body)
    request.setopt(pycurl.WRITEFUNCTION, len)
    return request


def _send(curls: pycurl.CurlMulti, requests: Sequence[pycurl.Curl]) -> None:
    """Send all requests, and wait for the last reply."""
    for request in requests:
        curls.add_handle(request)
    n_open = len(requests)
    while n_open:
        _, n_open = curls.perform()
        if n_open:
            curls.select(1.0)
    for request in requests:
        curls.remove_handle(request)
