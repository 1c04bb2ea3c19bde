"""What of an address is shown, what is sent, and what is taken out of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import Address, split_name, written_name
from mesa_llm.llm.credentials import without_secrets

BASE = "https://host.example/v1"


@pytest.mark.parametrize(
    "api_base",
    [
        BASE,
        BASE + "/",
        "HTTPS://Host.Example:443/v1",
        BASE + "/chat/completions",
        "https://ann:p%40ss@host.example/v1?api-key=abcd1234#part",
    ],
)
def test_one_endpoint_has_one_name_however_it_is_written(api_base: str) -> None:
    assert Address.of(api_base).base == BASE
    assert written_name(f"my-model@{api_base}") == f"my-model@{BASE}"


def test_user_and_query_are_sent_and_shown_nowhere() -> None:
    address = Address.of("https://ann:p%40ssword@[::1]:8443/v1?api-key=abcd1234")
    assert address.completions == "https://[::1]:8443/v1/chat/completions?api-key=abcd1234"
    assert address.authorization == "Basic YW5uOnBAc3N3b3Jk"
    assert repr(address) == "Address(base='https://[::1]:8443/v1')"


@pytest.mark.parametrize("api_base", ["", "localhost:8080", "ftp://host/v1", "http://ann:secret@", "http://h:port/v1"])
def test_what_is_no_address_is_an_error_without_secrets(api_base: str) -> None:
    with pytest.raises(ConfigError, match="must be a URL") as told:
        Address.of(api_base)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my-model", ("my-model", None)),
        ("@cf/meta/llama", ("@cf/meta/llama", None)),
        ("m@http://a@h/v1", ("m", "http://a@h/v1")),
        ("m@2024@HTTPS://h", ("m@2024", "HTTPS://h")),
    ],
)
def test_a_model_and_its_address_are_told_apart(text: str, parts: tuple[str, str | None]) -> None:
    assert split_name(text) == parts


@given(st.text(min_size=4), st.text(), st.text())
def test_no_secret_is_left_in_a_text(secret: str, before: str, after: str) -> None:
    left = without_secrets(f"{before}{secret}{after}", [secret])
    assert secret not in left.replace("(key)", "\n\n") or secret in "(key)"


def test_a_secret_is_found_as_a_url_and_as_json_write_it() -> None:
    assert without_secrets('a%2Fb%20c"d, a/b c\\"d', ['a/b c"d', "a/b c"]) == '(key)"d, (key)'
