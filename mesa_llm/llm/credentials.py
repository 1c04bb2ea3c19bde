"""What keys, tokens and passwords look like: the one list that addresses, replies, errors and exports are checked by.

A kind is certain if nothing else has its form, or possible, as a long random string is; what is certain is never
exported, and what is possible is listed for a person to look at.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple
from urllib.parse import quote, quote_plus

MIN_SECRET = 4
"""Minimum number of characters of a secret that is removed from texts; shorter ones occur in ordinary words."""

MIN_ENVIRONMENT_SECRET = 8
"""The same for secrets of the environment."""

MIN_ENVIRONMENT_WORD = 16
"""The same for one of letters alone, such as `postgres`, that is taken out of texts."""

MIN_RANDOM = 24
"""Minimum number of characters of a random string."""

MIN_HEX = 32
"""The same for one of hexadecimal digits, which has less in each."""

RANDOM = "long random string"
"""Kind of what may be a key of any provider, or a hash."""

KEY = "(key)"
"""What stands in place of a secret."""

_SECRET_NAME = re.compile(r"(_KEY|_TOKEN|_SECRET|_PASSWORD|_PASSWD|_PAT|_CREDENTIALS?)$|^DATABASE_URL$", re.IGNORECASE)
"""Names of environment variables that hold secrets."""

INVISIBLE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that no screen shows, and terminal escapes."""


class Credential(NamedTuple):
    """Something in a text that looks like a secret."""

    kind: str
    """What it may be."""

    start: int
    """Index of its first character."""

    end: int
    """Index after its last character."""

    is_certain: bool
    """Whether hardly anything else looks like this."""


class _Kind(NamedTuple):
    name: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


def _kinds() -> Iterator[_Kind]:
    """Compile the table below: each pattern stands alone, and has a digit in it unless it is marked with `!`."""
    for name, signs, pattern in _TABLE:
        digit = "" if pattern.startswith("!") else r"(?=[\w.+/=-]*\d)"
        yield _Kind(name, tuple(signs.split()), re.compile(rf"(?<![A-Za-z0-9]){digit}(?:{pattern.removeprefix('!')})"))


_TABLE = (
    ("API key", "sk- sk_", r"sk[-_][A-Za-z0-9][\w-]{15,}"),
    ("API key", "xai- nvapi- pplx- csk- tvly- fc- voyage- pa-",
     r"(?:xai|nvapi|pplx|csk|tvly|voyage|pa|fc)-[\w-]{16,}"),
    ("API key", "gsk_ hf_ r8_ fw_ fw- jina_ e2b_ phc_ tgp_v1_",
     r"(?:gsk|hf|r8|fw|jina|e2b|phc|tgp_v1)[_-][A-Za-z0-9_-]{16,}"),
    ("Google API key", "AIza", r"AIza[\w-]{30,}"),
    ("Google token", "ya29. GOCSPX- 1//0", r"(?:ya29\.|GOCSPX-|1//0)[\w-]{16,}"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[pousr]|github_pat)_\w{20,}"),
    ("GitLab token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- glimt- glffct-",
     r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|ffct)-[\w.-]{16,}"),
    ("Slack token", "xox xapp-", r"(?:xox[a-z]|xapp)-[\w-]{10,}"),
    ("AWS access key", "AKIA ASIA ABIA ACCA", r"!(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("Stripe key", "_live_ _test_ whsec_", r"(?:(?:sk|rk|pk)_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    ("Twilio key", "SK AC", r"(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("SendGrid key", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("Mailgun key", "key-", r"key-[0-9a-f]{32}"),
    ("Mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    ("package registry token", "npm_ pypi- rubygems_ dckr_pat_", r"(?:npm_|pypi-|rubygems_|dckr_pat_)[\w-]{16,}"),
    ("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{32,}"),
    ("access token",
     "shp lin_ ntn_ secret_ figd_ glsa_ sntry lsv2_ PMAK- NRAK- pat- sq0 ATATT ATBB dapi hvs. wandb_v1_",
     r"(?:shp(?:at|ca|pa|ss)_|lin_api_|ntn_|secret_|figd_|glsa_|sntry[su]_|lsv2_[ps][tk]_|PMAK-|NRAK-|pat-\w{2,4}-"
     r"|sq0[a-z]{3}-|ATATT3|ATBB|dapi|hvs\.|wandb_v1_)[\w=.-]{20,}"),
    ("Telegram token", ":AA", r"\d{8,10}:AA[\w-]{30,}"),
    ("webhook", "hooks.slack.com/", r"!hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{10,}"),
    ("webhook", "/api/webhooks/", r"!discord(?:app)?\.com/api/webhooks/\d+/[\w-]{10,}"),
    ("webhook", "webhook.office.com", r"![\w.-]*webhook\.office\.com/[\w@/-]{10,}"),
    ("Azure key", "AccountKey= SharedAccessKey=", r"!(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/%]{20,}=*"),
    ("signature of a URL", "sig= Signature=", r"!(?:sig|Signature|X-Amz-Signature)=[\w%/+.~-]{20,}=*"),
    ("JSON web token", "eyJ", r"!eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){1,3}"),
    ("private key", "AGE-SECRET-KEY-1", r"!AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
)  # fmt: skip
"""Name, signs of which one stands in every such secret, and pattern."""

_PROVIDERS = tuple(_kinds())

_DISCORD_SIGN = re.compile(r"\.[\w-]{6}\.[\w-]{27}")
_DISCORD = re.compile(r"(?<![A-Za-z0-9])(?=[\w.-]*\d)[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}")

_BLOCK = re.compile(
    r"-{4,5} ?BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d|\bb3BlbnNzaC1rZXktdjE"
)
_BLOCK_SIGNS = ("PRIVATE KEY", "PuTTY-User", "b3BlbnNzaC1rZXktdjE")
_PUBLIC = re.compile(
    r"-----BEGIN [A-Z0-9 ]*(?:CERTIFICATE|PUBLIC KEY)[A-Z ]*-----"
    r"|\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-[\w-]+) AAAA[\w+/]{20,}"
)
_HEADER = re.compile(
    r"\b(?:bearer|apikey|negotiate|ntlm)[ :]+(?=[\w+/.~-]*\d)[\w+/.~-]{12,}=*|\bbasic[ :]+(?P<pair>[a-z0-9+/]{8,}=*)",
    re.IGNORECASE,
)
_HEADER_WORDS = ("bearer", "apikey", "negotiate", "ntlm", "basic")
_USER = re.compile(r"://(?<=[A-Za-z0-9+.-]://)[^\s/?#:@\"'<>]*:(?P<value>[^\s/?#@\"'<>]+)@[\w\[]")
_NETRC = re.compile(r"\blogin\s+\S+\s+password\s+(?P<value>\S+)", re.IGNORECASE)
_COOKIE = re.compile(
    r"\b(?:set-)?cookie2?[\"']?\s*[:=]\s*[\"']?(?P<value>[\w.%-]+=[^\s;\"']{6,})"
    r"|\b(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|sessionid|csrftoken|laravel_session)[\"']?\s*[=:]\s*"
    r"[\"']?[\w%.+/-]{8,}",
    re.IGNORECASE,
)

_COOKIE_WORDS = (
    *("cookie", "phpsessid", "jsessionid", "asp.net_sessionid", "connect.sid", "sessionid", "csrftoken"),
    "laravel_session",
)

SECRET_WORDS = (
    r"api[ _-]?key|secret|passw(?:or)?d|passwd|pwd|passphrase|pass[ _-]?code|access[ _-]?key|auth[ _-]?key"
    r"|token(?!s|iz)|credentials?|private[ _-]?key|account[ _-]?key|encryption[ _-]?key|signing[ _-]?key"
    r"|authorization|kennwort|passwort|mot[ _]de[ _]passe|contraseña"
)
"""Words in the names of secrets."""

SECRET_COLUMN = re.compile(rf"(?:[\w .-]*?[ _.-])?(?:{SECRET_WORDS}|pin|pass|auth|key)", re.IGNORECASE)
"""Names of columns that hold secrets."""

_ASSIGNMENT = re.compile(
    rf"(?P<name>{SECRET_WORDS}|(?<=[?&])(?:key|pass|auth|sid))(?:[_.-][a-z0-9_.-]{{0,40}}|\d{{0,3}})"
    r"(?:\\?[\"'`]?\]?\s{0,8}(?::=|=>|==?|:)\s{0,8}|\s{0,3}</?\w*>\s{0,3}|>\s{0,8}|[\"'],\s{0,4}"
    r"|\s{1,3}(?=[\"'][^\s\"']{8,}[\"'])|(?<=--password)\s+|(?<=-token)\s+|(?<=-key)\s+)"
    r"(?:[rbuf]?(?P<mark>\\?[\"'`])(?P<quoted>(?:(?!(?P=mark))[^\r\n]){4,400})(?P=mark)"
    r"|(?P<bare>[^\s\"'`,;&<>{}\[\]()\\]{4,400}))"
)
"""A name of a secret with its value, in TOML, YAML, JSON, Python, shells, URLs, XML and command lines."""

_ASSIGNED_WORDS = (
    *("api", "secret", "pass", "pwd", "access", "auth", "token", "credential", "private", "account", "encryption"),
    *("signing", "kennwort", "mot", "contraseña", "key", "sid"),
)
"""Words of which one begins each assignment."""

_PLACEHOLDER = re.compile(
    r"^(?:none|null|nil|true|false|undefined|optional|required|secret|password|token|string|str|int|env|unset|empty|"
    r"n/?a|todo|tbd|\(key\)|redacted|removed|hidden|changeme|example|placeholder|.*\b(?:your|my|the)[-_ ].*|"
    r".*(?:environ|getenv|\.\.\.|…|\bxxx+|\*\*\*|\$\{|\$\(|\{\{|<[^>]*>|%s|\(key\)).*|x+|\*+|\.+|-+|_+|\$\w+|@\w+)$",
    re.IGNORECASE | re.DOTALL,
)  # fmt: skip
"""Values in the place of a secret that are none."""

_RANDOM = re.compile(r"(?<![A-Za-z0-9+/_=.@-])[A-Za-z0-9+/_-]{24,512}={0,2}(?![A-Za-z0-9+/_=@])")

_BEGINNING = re.compile(r"sk-[\w-]{8,}|(?=\D*\d)(?:(?:hf|gsk|ghp|fw|r8)_|(?:xai|nvapi|pplx|csk)-|AIza)[\w-]{8,}")
"""Beginnings of keys, which are enough where no other word begins so, as in an address."""

_LONG_RUN = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{20,}", re.IGNORECASE)
"""A run of letters and digits longer than any word, version or date; a UUID has hyphens in between."""


def credentials_in(text: str, *, with_possible: bool = True) -> Iterator[Credential]:
    """Find what looks like a secret in a text.

    Args:
        text: The text, decoded, as a person would read it; see `visible`.
        with_possible: Whether to find long random strings, public keys, certificates and cookies as well.
    """
    lowered = _lowered(text)
    for kind in _PROVIDERS:
        if any(sign in text for sign in kind.signs):
            for match in kind.pattern.finditer(text):
                yield Credential(kind.name, *match.span(), True)
    if _DISCORD_SIGN.search(text):
        for match in _DISCORD.finditer(text):
            yield Credential("Discord token", *match.span(), True)
    if any(sign in text for sign in _BLOCK_SIGNS):
        for match in _BLOCK.finditer(text):
            yield Credential("private key", *match.span(), True)
    for match in _matches(_HEADER, _HEADER_WORDS, lowered, text):
        if match["pair"] is None or _is_pair(match["pair"]):
            yield Credential("authorization", *match.span(), True)
    for match in chain(_USER.finditer(text), _matches(_NETRC, ("login",), lowered, text)):
        if not _PLACEHOLDER.match(match["value"]):
            yield Credential("password of an address", *match.span("value"), True)
    yield from _assigned(text, lowered, with_possible)
    if with_possible:
        yield from _possible(text, lowered)


def _lowered(text: str) -> str:
    """Return a text in small letters, of the same length."""
    lowered = text.lower()
    if len(lowered) != len(text):  # of a few letters, such as İ
        lowered = "".join([one.lower() if len(one.lower()) == 1 else one for one in text])
    return lowered


def _matches(pattern: re.Pattern[str], words: Iterable[str], lowered: str, text: str) -> Iterator[re.Match[str]]:
    """Find a pattern at each place of the words that it begins with, which is quicker than everywhere.

    Args:
        pattern: The pattern.
        words: The words, in small letters.
        lowered: The text in small letters.
        text: The text in which the pattern is matched.
    """
    end = 0
    for at in sorted({at for word in words for at in _indices(word, lowered)}):
        if at >= end and (match := pattern.match(text, at)):
            end = match.end()
            yield match


def _indices(word: str, text: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _assigned(text: str, lowered: str, with_possible: bool) -> Iterator[Credential]:
    """Find values that are given to a name of a secret."""
    for match in _matches(_ASSIGNMENT, _ASSIGNED_WORDS, lowered, lowered):
        group = "quoted" if match["quoted"] is not None else "bare"
        start, end = match.span(group)
        value, name = text[start:end], match["name"]
        if _PLACEHOLDER.match(value) or not is_telling(value, name, is_quoted=group == "quoted"):
            continue
        is_certain = is_strong(value)
        if is_certain or with_possible:
            yield Credential(f"value of {name!r}", start, end, is_certain)


def _is_pair(word: str) -> bool:
    """Check whether base64 holds a user and a password."""
    try:
        user, colon, password = base64.b64decode(word + "=" * (-len(word) % 4)).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        return False
    return bool(colon and password) and (user + password).isprintable()


def is_strong(value: str) -> bool:
    """Check whether a value mixes kinds of characters as no word or number does."""
    if len(value) < 8 or " " in value.strip():
        return False
    has_digit, has_letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    has_sign = any(not character.isalnum() and character not in "-_./:@" for character in value)
    return has_letter and (has_digit or has_sign)


def is_telling(value: str, name: str, *, is_quoted: bool) -> bool:
    """Check whether the value of a name may be a secret at all; a sentence after “secret:” is none."""
    if is_strong(value):
        return True
    if value.replace(".", "").isdigit():
        return "pass" in name or "pwd" in name or len(value) >= 16
    return ("pass" in name or "pwd" in name or "key" in name or "wort" in name) and (
        is_quoted or len(value) >= 6
    )  # fmt: skip


def _possible(text: str, lowered: str) -> Iterator[Credential]:
    """Find what may be a secret, and may be something else."""
    if "-----BEGIN" in text or " AAAA" in text:
        for match in _PUBLIC.finditer(text):
            yield Credential("certificate or public key", *match.span(), False)
    for match in _matches(_COOKIE, _COOKIE_WORDS, lowered, text):
        yield Credential("cookie", *match.span(), False)
    for match in _RANDOM.finditer(text):
        if is_random(match[0]):
            yield Credential(RANDOM, *match.span(), False)


def is_random(word: str) -> bool:
    """Check whether a word looks drawn at random: by its entropy, and by how often the kind of character changes."""
    body = word.rstrip("=")
    if len(body) >= MIN_HEX and re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", body):
        return not body.isdigit() and _entropy(body) >= 3
    if len(body) < MIN_RANDOM or (body.isalpha() and (body.islower() or body.isupper())):
        return False
    kinds = ["d" if one.isdigit() else "U" if one.isupper() else "l" if one.islower() else "-" for one in body]
    n_changes = sum(one != other for one, other in pairwise(kinds))
    n_words = len(re.findall(r"[A-Z]?[a-z]{4,}", body)) * 4 + sum(map(len, re.findall(r"\d{6,}", body)))
    return _entropy(body) >= 3.5 and n_changes >= len(body) / 4 and n_words < len(body) / 3 and "d" in kinds


def _entropy(text: str) -> float:
    """Return the entropy of a text's characters, in bits a character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def looks_secret(text: str) -> bool:
    """Check whether a word of an address looks like a key: by how it begins, or as a long run of letters and digits."""
    return bool(_BEGINNING.match(text) or _LONG_RUN.search(text)) or any(
        kind.pattern.match(text) for kind in _PROVIDERS if any(sign in text for sign in kind.signs)
    )


def visible(text: str) -> str:
    """Return a text as a screen shows it: without invisible characters, and with wide letters as plain ones."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return INVISIBLE.sub("", text)


def environment_secrets() -> list[str]:
    """List the values of the environment's keys, tokens and passwords."""
    return [
        value
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value) >= MIN_ENVIRONMENT_SECRET
    ]


def environment_keys() -> list[str]:
    """List the keys, tokens and passwords of the environment that are no ordinary words."""
    return [one for one in environment_secrets() if len(one) >= MIN_ENVIRONMENT_WORD or not one.isalpha()]


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets in a text by `(key)`: as they are, and as URLs and JSON encode them."""
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) >= MIN_SECRET:
            forms |= {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1]}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, KEY)
    return text


def without_credentials(text: str) -> str:
    """Replace the environment's secrets, and what is certain to be one, by `(key)`; other texts are unchanged."""
    cleaned = without_secrets(text, environment_keys())
    shown = visible(cleaned)
    found = sorted({(one.start, one.end) for one in credentials_in(shown, with_possible=False)}, reverse=True)
    if not found:
        return cleaned
    last = len(shown)
    for start, end in found:
        shown = shown[:start] + KEY + shown[min(end, last) :] if start < last else shown
        last = start
    return shown
