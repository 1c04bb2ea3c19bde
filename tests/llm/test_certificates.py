"""Trusted certificates come from whichever variable people have set."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from mesa_llm.errors import ConfigError
from mesa_llm.llm.certificates import VARIABLES, curl_options, share_certificates
from mesa_llm.llm.openai.connection import Response, send
from tests.faulty_server import FaultyServer

HEADERS = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, "x")  # so that it is restored whatever `share_certificates` sets
        monkeypatch.delenv(variable)


def ask_trusting(authority: trustme.CA, folder: Path) -> Response:
    """Ask an encrypted server whose certificate an authority has signed; write that to a folder."""
    secret = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(secret)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    with FaultyServer(secret=secret) as server:
        return asyncio.run(send(f"{server.url}/chat/completions", HEADERS, b'{"messages": []}', 20, 100_000))


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_each_variable_is_respected(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "ca.pem"))
    assert ask_trusting(trustme.CA(), tmp_path).status < 500


def test_certificates_of_two_variables_are_both_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    assert ask_trusting(trustme.CA(), tmp_path).status < 500


def test_an_untrusted_certificate_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConnectionRefusedError, match="SSL_CERT_FILE"):
        ask_trusting(trustme.CA(), tmp_path)


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("content", [None, b"", b"<html>"])
def test_a_variable_that_names_no_certificates_is_named(
    variable: str, content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    monkeypatch.setenv(variable, str(tmp_path / "ca.pem"))
    with pytest.raises(ConfigError, match=f"{variable} names .*ca.pem"):
        curl_options()


def test_clients_that_read_one_variable_get_the_value_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "ca.pem"))
    share_certificates()
    assert ssl.create_default_context().get_ca_certs()
