"""What data about persons look like: numbers with their check digits, addresses, contacts, places and columns."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

PERSONAL_COLUMNS = re.compile(
    r"(?:user|screen|first|last|given|middle|family|full|real|sur|birth|maiden|display|nick)?[ _-]*name|vorname"
    r"|nachname|familienname|pr[eé]nom|nom(?: de famille)?|nombres?|apellidos?|cognome|e[ _-]?mail(?:[ _-]?address)?"
    r"|(?:tele)?phone(?:[ _-]?(?:no|number|nr))?|mobile|cell(?:[ _-]?phone)?|handy|telefon(?:nummer)?|tel|fax"
    r"|(?:home|street|postal|mailing|ip)?[ _-]*address(?:[ _-]?\d)?|adresse|direcci[oó]n|indirizzo|strasse|straße"
    r"|street|zip(?:[ _-]?code)?|post(?:al)?[ _-]?code|plz|birth[ _-]?(?:day|date)|date[ _-]of[ _-]birth|dob|born"
    r"|geburts(?:tag|datum)|date[ _-]de[ _-]naissance|fecha[ _-]de[ _-]nacimiento|ssn"
    r"|social[ _-]security(?:[ _-]number)?|ahv|passport(?:[ _-]?(?:no|number))?|national[ _-]?id|tax[ _-]?id|iban"
    r"|account[ _-]?(?:no|number)|credit[ _-]?card|card[ _-]?number|lat(?:itude)?|lon(?:gitude)?|lng"
    r"|gps(?: position)?|coordinates|patient(?:[ _-]?id)?|student[ _-]?(?:id|number)|licen[cs]e[ _-]?plate"
    r"|ip(?:[ _-]?addr)?",
    re.IGNORECASE,
)
"""Names of columns that hold data about persons."""


class PersonalKind(NamedTuple):
    """A kind of personal data."""

    name: str
    """What it may be."""

    pattern: re.Pattern[str]
    """What it looks like."""

    holds: Callable[[str], bool]
    """Checks what the pattern finds."""

    sign: re.Pattern[str] | None = None
    """What stands in each of them, and is found more quickly; None: all of a text is looked through."""


REACH = 48
"""Number of characters around a sign that are looked through."""

_SIX_DIGITS = re.compile(r"\d(?:[^\d\n]{0,7}\d){5}")
_NUMBERS_OF_ADDRESSES = re.compile(
    r"\.\d{1,3}\.\d|:[0-9a-fA-F]{0,4}:[0-9a-fA-F]|[:-][0-9a-fA-F]{2}[:-][0-9a-fA-F]{2}[:-]"
)
_AT = re.compile(r"@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2}|\[at\]| \(at\) ")


def _any(found: str) -> bool:
    return True


def _digits(found: str) -> list[int]:
    return [int(one) for one in found if one.isdigit()]


def has_luhn(found: str) -> bool:
    """Check the last digit of a card's number or the like."""
    digits = _digits(found)
    doubled = [number if index % 2 == 0 else sum(divmod(2 * number, 10)) for index, number in enumerate(digits[::-1])]
    return len(set(digits)) > 2 and sum(doubled) % 10 == 0


def is_iban(found: str) -> bool:
    """Check an IBAN by its remainder."""
    text = re.sub(r"[^A-Z0-9]", "", found.upper())
    return 15 <= len(text) <= 34 and int("".join(str(int(one, 36)) for one in text[4:] + text[:4])) % 97 == 1


def _weighted(found: str, weights: str, modulus: int) -> int:
    return sum(int(weight, 36) * digit for weight, digit in zip(weights, _digits(found), strict=False)) % modulus


def _is_ahv(found: str) -> bool:
    return len(_digits(found)) == 13 and _weighted(found, "1313131313131", 10) == 0


def _is_cpf(found: str) -> bool:
    digits = _digits(found)
    first = _weighted(found, "A98765432", 11)
    second = _weighted(found, "BA98765432", 11)
    return digits[9] == (0 if first < 2 else 11 - first) and digits[10] == (0 if second < 2 else 11 - second)


def _is_pesel(found: str) -> bool:
    month = int(found[2:4]) % 20
    return _weighted(found, "13791379131", 10) == 0 and 1 <= month <= 12 and 1 <= int(found[4:6]) <= 31


def _is_nir(found: str) -> bool:
    digits = re.sub(r"\D", "", found.upper().replace("2A", "19").replace("2B", "18"))
    return len(digits) == 15 and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _is_dni(found: str) -> bool:
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(found[:8]) % 23] == found[-1].upper()


def _is_chinese_id(found: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(weight * int(one) for weight, one in zip(weights, found, strict=False))
    return "10X98765432"[total % 11] == found[-1].upper()


_VERHOEFF = (
    *("0123456789", "1234067895", "2340178956", "3401289567", "4012395678"),
    *("5987604321", "6598710432", "7659821043", "8765932104", "9876543210"),
)
_SHIFTS = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)


def _is_aadhaar(found: str) -> bool:
    check = 0
    for index, digit in enumerate(_digits(found)[::-1]):
        check = int(_VERHOEFF[check][int(_SHIFTS[index % 8][digit])])
    return check == 0


def _is_public_ip(found: str) -> bool:
    try:
        address = ipaddress.ip_address(found)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast) and found.count(".") != 1


def _is_place(found: str) -> bool:
    numbers = [abs(float(one)) for one in re.findall(r"-?\d+\.\d+", found)]
    return len(numbers) == 2 and 1 <= numbers[0] <= 90 and 1 <= numbers[1] <= 180


_START, _END = r"(?<![\w.,/-])", r"(?![\w-]|[.,]\d)"

EMAIL = PersonalKind(
    "e-mail address", re.compile(r"[\w.+-]+(?:@|\[at\]| \(at\) )[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}\b"), _any, _AT
)
_DATE = re.compile(r"\d{2}[-/ .]\d{2}[-/ .]\d{4}")

PHONE = PersonalKind(
    "phone number",
    re.compile(
        r"(?<![\w.,])(?:(?:\+\d|\(0\d|\(\+\d|0\d)[\d ()/-]{7,18}\d(?!\w|[.,]\d)|\+\d{1,3}(?:\.\d{2,4}){2,5}(?![\w.])"
        r"|0\d(?:\.\d{2}){4}(?![\w.])|(?:1[-. ])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\w-]|[.,]\d))"
    ),
    lambda found: not _DATE.search(found),
    _SIX_DIGITS,
)

_DIGITS = (
    PersonalKind(
        "bank account (IBAN)",
        re.compile(
            r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,4})?(?!"
            r"[A-Za-z0-9])"
        ),
        is_iban,
    ),
    PersonalKind(
        "payment card",
        re.compile(
            rf"{_START}(?:3[47]\d{{2}}[ -]?\d{{6}}[ -]?\d{{5}}|[3-6]\d{{3}}(?:[ -]?\d{{4}}){{3}}(?:\d{{1,3}})?)"
            rf"{_END}"
        ),
        has_luhn,
    ),
    PersonalKind(
        "US social security number",
        re.compile(rf"{_START}(?!000|666|9)\d{{3}}-(?!00)\d{{2}}-(?!0000)\d{{4}}{_END}"),
        _any,
    ),
    PersonalKind("US social security number", re.compile(r"(?i:ssn|social security)\D{0,20}\d{9}\b"), _any),
    PersonalKind("Swiss insurance number", re.compile(rf"{_START}756\.?\d{{4}}\.?\d{{4}}\.?\d{{2}}{_END}"), _is_ahv),
    PersonalKind(
        "UK insurance number",
        re.compile(r"\b(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b"),
        _any,
    ),
    PersonalKind(
        "Italian tax code", re.compile(r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b", re.IGNORECASE), _any
    ),
    PersonalKind("Spanish identity number", re.compile(r"\b\d{8}-?[A-HJ-NP-TV-Z]\b"), _is_dni),
    PersonalKind(
        "French insurance number",
        re.compile(rf"{_START}[12] ?\d{{2}} ?(?:0\d|1[0-2]) ?(?:\d{{2}}|2[AB]) ?\d{{3}} ?\d{{3}} ?\d{{2}}{_END}"),
        _is_nir,
    ),
    PersonalKind("Polish identity number", re.compile(rf"{_START}\d{{11}}{_END}"), _is_pesel),
    PersonalKind("Brazilian tax number", re.compile(rf"{_START}\d{{3}}\.\d{{3}}\.\d{{3}}-\d{{2}}{_END}"), _is_cpf),
    PersonalKind(
        "Chinese identity number",
        re.compile(rf"{_START}[1-9]\d{{5}}(?:19|20)\d{{2}}(?:0[1-9]|1[0-2])\d{{5}}[\dXx]{_END}"),
        _is_chinese_id,
    ),
    PersonalKind(
        "Indian identity number", re.compile(rf"{_START}[2-9]\d{{3}}[ -]\d{{4}}[ -]\d{{4}}{_END}"), _is_aadhaar
    ),
    PersonalKind("Canadian insurance number", re.compile(rf"{_START}\d{{3}}-\d{{3}}-\d{{3}}{_END}"), has_luhn),
    PersonalKind(
        "Nordic identity number",
        re.compile(rf"{_START}(?:\d{{2}})?(?:[0-2]\d|3[01])(?:0[1-9]|1[0-2])\d{{2}}[-+A]\d{{3}}[\dA-Y]{_END}"),
        _any,
    ),
)

NUMBERS = (
    *[kind._replace(sign=_SIX_DIGITS) for kind in _DIGITS],
    PersonalKind(
        "IP address",
        re.compile(
            r"(?<![\w.:-])(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-fA-F]{1,4}:){2,7}(?::?[0-9a-fA-F]{1,4}){1,6})(?!"
            r"[\w.:]*\w)"
        ),
        _is_public_ip,
        _NUMBERS_OF_ADDRESSES,
    ),
    PersonalKind(
        "hardware address",
        re.compile(r"(?<![\w:-])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:-])"),
        _any,
        _NUMBERS_OF_ADDRESSES,
    ),
)
"""Numbers whose form or check digit hardly anything else has."""

PLACES = (
    PersonalKind(
        "GPS position",
        re.compile(r"(?<![\d.,] )(?<![\d.,])-?\d{1,2}\.\d{4,}[,;] ?-?\d{1,3}\.\d{4,}(?! ?[,;]|\d)"),
        _is_place,
    ),
    PersonalKind(
        "GPS position",
        re.compile(r"\d{1,2}° ?\d{1,2}['′’] ?[\d.]{0,8}[\"″”]? ?[NSns]\b|\bgeo:-?\d|-?\d{1,3}\.\d{3,}° ?[NSEW]"),
        _any,
    ),
    PersonalKind(
        "GPS position",
        re.compile(r"(?i:\b(?:lat(?:itude)?|lon(?:gitude)?|lng)\b)[\"']?\s{0,2}[:=]\s{0,2}-?\d{1,3}\.\d{3,}"),
        _any,
    ),
    PersonalKind(
        "postal address",
        re.compile(
            r"\b\d{1,5}[a-z]?,? (?:[A-Z][\w'.-]+ ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulev"
            r"ard|Blvd|Court|Ct|Way|Place|Square|Terrace)\b"
        ),
        _any,
    ),
    PersonalKind(
        "postal address",
        re.compile(
            r"\b[A-ZÄÖÜ][\wäöüß.-]*(?:[sS]tra(?:ß|ss)e|[sS]tr\.|gasse|[wW]eg|[pP]latz|[aA]llee|straat|laan|gat"
            r"an|vej) \d{1,4}[a-z]?\b"
        ),
        _any,
    ),
    PersonalKind(
        "postal address",
        re.compile(
            r"\b\d{1,4}(?: ?(?:bis|ter))?,? (?:rue|avenue|boulevard|place|chemin|impasse|quai) (?:de |du |des "
            r"|la |l')*[A-ZÉÈ]\w+"
        ),
        _any,
    ),
    PersonalKind(
        "postal address",
        re.compile(
            r"\b(?:Calle|Avenida|Via|Viale|Piazza|Rua|Plaza) (?:[A-Zdel]\w* ){0,3}[A-Z]\w+,? (?:n[.º°] ?)?\d"
            r"{1,4}\b"
        ),
        _any,
    ),
    PersonalKind(
        "postal address",
        re.compile(r"\b[A-Z][a-z]+, [A-Z]{2} \d{5}(?:-\d{4})?\b|\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b"),
        _any,
    ),
    PersonalKind(
        "date of birth",
        re.compile(
            r"(?i:\b(?:born(?: on)?|birth ?(?:day|date)|date of birth|d\.?o\.?b\.?|geboren(?: am)?|geb\.|née? "
            r"le|fecha de nacimiento|nat[oa] il))\W{0,4}(?:\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}|\d{1,2}\.? "
            r"[A-Za-zé]{3,9},? \d{4}|[A-Z][a-z]{2,8} \d{1,2},? \d{4})"
        ),
        _any,
    ),
)
"""Where a person lives or was, and since when."""


def found_of(kinds: tuple[PersonalKind, ...], text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the index of personal data of some kinds."""
    places: dict[re.Pattern[str] | None, list[tuple[int, int]]] = {None: [(0, len(text))]}
    for kind in kinds:
        if kind.sign not in places:
            places[kind.sign] = [] if kind.sign is None else list(_around(kind.sign, text))
        for start, end in places[kind.sign]:
            for match in kind.pattern.finditer(text, start, end):
                if kind.holds(match[0]):
                    yield kind.name, match[0], match.start()


def _around(sign: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield where a text holds signs, with what stands around them; places that touch are one."""
    start, end = 0, -1
    for match in sign.finditer(text):
        if end >= 0 and match.start() - REACH > end:
            yield start, end
            end = -1
        if end < 0:
            start = max(0, match.start() - REACH)
        end = min(len(text), match.end() + REACH)
    if end >= 0:
        yield start, end
