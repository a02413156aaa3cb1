"""The lines of a text: what is skipped for speed would not have been found."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.sentences import _blocks
from rag_eval_integrations.sentences._blocks import BULLETED, LINKS, NUMBERED, Lines

# A line ends here, and "\n\f" ends one line only.
BREAK = re.compile("(?:\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029])(?:(?<=\n)\f)?")
TEXTS = st.text(st.sampled_from("ab. \t\n\r\f\v\x1c\x85\u2028\u2029>->\u00a0")) | st.text()


def first_facts(line: str) -> int:
    [facts] = Lines(line).facts
    return facts


@given(TEXTS)
def test_lines_are_where_a_pattern_finds_them(text: str) -> None:
    """Positions, white space before the words, and quotation marks, in any mixture of breaks."""
    lines = Lines(text)
    cuts = [0, *(one.end() for one in BREAK.finditer(text)), len(text)]
    expected = [text[a:b] for a, b in pairwise(cuts) if text[a:b]]

    assert [raw for raw in lines.raw if raw] == expected
    for at, raw in enumerate(lines.raw):
        words = text[lines.start[at] : lines.end[at]]
        assert words == raw.strip()
        assert lines.words[at] == words[lines.quoted[at] :]
        assert lines.indent(at) == len(raw) - len(raw.lstrip())


@given(st.from_regex(_blocks._NUMBER) | st.from_regex(_blocks._BULLET))
def test_every_list_marker_is_found(line: str) -> None:
    """Lines are not read for one only where their first two characters begin none."""
    words = line.strip()
    if not words or len(words.splitlines()) > 1 or words[0] == ">":
        return
    bullet, number = _blocks._BULLET.match(words), _blocks._NUMBER.match(words)
    facts = first_facts(words)

    assert bool(facts & BULLETED) == (bullet is not None)
    assert bool(facts & NUMBERED) == (bullet is None and number is not None)
    if marker := bullet or number:
        assert Lines(words).markers[words] == marker.end()


@given(st.from_regex(_blocks._LINKING))
def test_every_linking_word_is_found(line: str) -> None:
    """Lines are not read for one only where their last character ends none."""
    words = line.strip()
    if words and len(words.splitlines()) == 1 and words[0] != ">":
        assert bool(first_facts(words) & LINKS) == bool(_blocks._LINKING.search(words[-12:]))
