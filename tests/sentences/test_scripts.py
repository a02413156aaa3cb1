"""Where a sentence may end, in every script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.sentences.punkt import CERTAIN_MARKS, SPACED_MARKS, ends


def certain(text: str) -> list[str]:
    """Return *text* cut at the ends that leave no doubt."""
    cuts = [(stop, begins) for _, _, stop, begins, certain in ends(text, 0, len(text)) if certain]
    starts = [0, *(following for _, following in cuts)]
    return [text[a:b] for a, b in zip(starts, [*(stop for stop, _ in cuts), None], strict=True)]


@pytest.mark.parametrize(
    "expected",
    [
        ["今天很好。", "真的吗？", "是！", "好"],
        ["你好。", "“我是。”", "他说。"],
        ["今日は晴れです．", "円周率は3．14です．", "終"],
        ["「行く。」", "次です。", "終"],
        ["यह वाक्य है।", "दूसरा॥", "तीसरा"],
        ["ဒါ။", "နောက်"],
    ],
)
def test_scripts_without_spaces_are_split_at_their_own_marks(expected: list[str]) -> None:
    """No white space is needed, and closing quotes stay with the sentence that ends."""
    assert expected == certain("".join(expected))


@pytest.mark.parametrize(
    "expected", [["هل هذا سؤال؟", "نعم"], ["یہ جملہ ہے۔", "دوسرا"], ["Ով։", "Այո"]]
)
def test_marks_before_white_space_leave_it_out(expected: list[str]) -> None:
    """White space between two sentences belongs to neither."""
    assert expected == certain(" ".join(expected))


def test_a_quotation_inside_a_japanese_sentence_does_not_end_it() -> None:
    """「…。」と goes on."""
    assert certain("「行く。」と言った。次") == ["「行く。」と言った。", "次"]


@pytest.mark.parametrize(
    "text", ["3．14", "12։30", "a.b", "x.com/a?c=1", "3.5 mg", "…", "好…好", "?", "?a"]
)
def test_marks_inside_numbers_and_addresses_are_not_offered(text: str) -> None:
    """Nothing can end between two figures, nor at a spaced mark without white space."""
    assert list(ends(text, 0, len(text))) == []


@given(st.text(alphabet=SPACED_MARKS + CERTAIN_MARKS[:8] + "\"')”“」 a1好\n\u200b", max_size=40))
def test_ends_are_in_order_and_inside_the_text(text: str) -> None:
    """Each leaves something on both sides, and only white space up to the next sentence."""
    at = 0
    for mark, closing, stop, begins, _ in ends(text, 0, len(text)):
        assert at <= mark < closing <= stop <= begins < len(text)
        assert text[stop:begins].strip() == ""
        assert not text[begins].isspace()
        at = begins
