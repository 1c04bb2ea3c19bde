"""The certificates that TLS trusts: those of the system, or of the variables that people set behind a company's proxy.

curl, OpenSSL, Python's requests and httpx read a different variable each, and people set the one that helped before.
All of them count here, whichever client opens the connection.
"""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path
from typing import Any

import certifi
import pycurl

from mesa_llm.errors import ConfigError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables of the environment that name a file or a folder of trusted certificates."""

CERTIFICATE_ADVICE = (
    "if the certificate is right, such as one of your company's proxy, name a file with the certificate of its "
    "authority in SSL_CERT_FILE"
)
"""What to do about a certificate that is not trusted."""


def named_certificates() -> tuple[list[str], list[str]]:
    """Return the files and folders of trusted certificates that the environment names.

    Raises:
        ConfigError: If one is not there, cannot be read, or is no certificate; the message names its variable.
    """
    files: list[str] = []
    folders: list[str] = []
    for variable in VARIABLES:
        text = os.environ.get(variable, "").strip()
        for name in text.split(os.pathsep) if variable == "SSL_CERT_DIR" else [text]:
            if name:
                target = folders if Path(name).is_dir() else files
                if target is files:
                    _require_certificates(variable, name)
                if name not in target:
                    target.append(name)
    return files, folders


def _require_certificates(variable: str, name: str) -> None:
    """Check that a file holds certificates.

    Raises:
        ConfigError: If it does not.
    """
    try:
        text = Path(name).read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigError(
            f"{variable} names {name!r}, which cannot be read ({error.strerror}); it is to be a file of trusted "
            "certificates (PEM); correct it, or unset it"
        ) from None
    if "-----BEGIN" not in text or "CERTIFICATE-----" not in text:
        raise ConfigError(
            f"{variable} names {name!r}, which holds no certificate in PEM form (-----BEGIN CERTIFICATE-----); correct "
            "it, or unset it"
        )


def share_certificates() -> None:
    """Let clients that read one variable alone, such as httpx and requests, trust what any of the variables names.

    Raises:
        ConfigError: As for `named_certificates`.
    """
    files, folders = named_certificates()
    for variable, names in (("SSL_CERT_FILE", files), ("SSL_CERT_DIR", folders), ("REQUESTS_CA_BUNDLE", files)):
        if names:
            os.environ.setdefault(variable, names[0])


_READ: dict[tuple[str | None, ...], dict[int, Any]] = {}
"""Values of the variables → the options that they give."""


def curl_options() -> dict[int, Any]:
    """Return libcurl's options for trusted certificates; the files are read once for each setting of the variables.

    Raises:
        ConfigError: As for `named_certificates`.
    """
    key = tuple(map(os.environ.get, VARIABLES))
    if key not in _READ:
        _READ[key] = _curl_options()
    return _READ[key]


def _curl_options() -> dict[int, Any]:
    files, folders = named_certificates()
    if folders:
        found: dict[int, Any] = {pycurl.CAPATH: os.pathsep.join(folders)}
    else:
        found = {}
    if len(files) > 1:
        found[pycurl.CAINFO_BLOB] = b"\n".join(Path(name).read_bytes() for name in files)
    elif files:
        found[pycurl.CAINFO] = files[0]
    if found:
        return found
    if sys.platform in ("win32", "darwin"):
        native: Any = pycurl  # the stubs for type checkers lack its newer names
        return {pycurl.CAINFO: certifi.where(), pycurl.SSL_OPTIONS: native.SSLOPT_NATIVE_CA}
    return {pycurl.CAINFO: ssl.get_default_verify_paths().cafile or certifi.where()}
