"""What somebody wrote is on one line, holds nothing unseen, and cannot close its quotation."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.tables import numbered_lines
from mesa_llm.text import clip, counted, figure_text, none_succeeded, one_line, quoted

BREAKS = ("\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
INVISIBLE = ("\x00", "\x1b", "\x9b", "\u200b", "\u200c", "\u202e", "\u2066", "\ufeff", "\xad", "\ud800", "\U000e0041")
texts = st.lists(st.one_of(st.sampled_from((*BREAKS, *INVISIBLE, "“", "”", " ")), st.text(max_size=5))).map("".join)


@given(texts)
def test_any_text_becomes_one_line_of_what_is_seen(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert one_line(line) == line
    assert {unicodedata.category(character) for character in line}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert not any(character in line for character in INVISIBLE)


@given(texts, st.integers(0, 40))
def test_a_quotation_ends_where_it_ends(text: str, most: int) -> None:
    quotation = quoted(text, most)
    assert (quotation[0], quotation[-1]) == ("“", "”")
    assert not set("“”") & set(quotation[1:-1])
    assert len(quotation) <= most + 2


@pytest.mark.parametrize("mark", BREAKS)
def test_every_line_break_is_a_blank(mark: str) -> None:
    assert one_line(f"yes{mark}[market] Closed.") == "yes [market] Closed."


def test_what_moves_a_terminal_or_hides_is_left_out() -> None:
    assert one_line("\x1b[2J\x1b]0;title\x07re\u200bd \u202eevil\u2069") == "red evil"


def test_a_text_that_is_harmless_stays_as_it_is() -> None:
    for text in ("Naïve café, 12 %: “yes”", "它涨了", "👍 ok"):
        assert one_line(text) == text


def test_a_text_is_cut_and_shows_it() -> None:
    assert (clip("seven", 5), clip("sevens", 5), clip("x", 0)) == ("seven", "seve…", "")
    assert one_line("a\nb c d", 4) == "a b…"


def test_things_are_counted_with_their_noun() -> None:
    assert (counted(1, "like"), counted(0, "like")) == ("1 like", "0 likes")
    assert (counted(1, "reply", "replies"), counted(2, "reply", "replies")) == ("1 reply", "2 replies")


def test_lines_of_a_file_end_at_line_breaks_alone(tmp_path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffone\u2028two\r\n \nthr\x85ee\n".encode())
    assert numbered_lines(path) == [(1, "one\u2028two"), (3, "thr\x85ee")]


@pytest.mark.parametrize(
    ("figure", "text"), [(999.4, "999"), (999.7, "1,000"), (-999.7, "-1,000"), (0.01234, "0.0123")]
)
def test_a_figure_has_three_digits_and_no_exponent(figure: float, text: str) -> None:
    assert figure_text(figure) == text


def test_a_single_failed_decision_is_the_only_one() -> None:
    assert [none_succeeded(n, "a.py") for n in (1, 3)] == [
        "the only decision of a.py failed",
        "none of the 3 decisions of a.py succeeded",
    ]


@pytest.mark.parametrize(
    "text", ["\U0001f9d1\u200d\U0001f680", "\U0001f3f3\ufe0f\u200d\U0001f308", "\u2764\ufe0f\u200d\U0001f525"]
)
def test_joined_emoji_stay_one_and_no_other_joiner_does(text: str) -> None:
    assert one_line(text) == text
    assert one_line(f"\u200d{text}\u200d\u200dA\u200dB\u200b\u200d{text[0]}\u200d") == f"{text}AB{text[0]}"
