"""What a template of a prompt may do, and what stops one that wants more."""

from __future__ import annotations

import contextlib

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import Prompty, parse_prompty


def prompt(source: str) -> Prompty:
    """Make a prompt of one message, which begins in line 1."""
    return parse_prompty(source, name="p")


def render(source: str, **values: object) -> str:
    return prompt(source).render(values)[0].content


def test_prompts_branch_loop_and_calculate() -> None:
    """What real prompt files do."""
    source = "{% if n > 1 %}{% for r in rules %}{{ loop.index }}. {{ r }}\n{% endfor %}{% endif %}"
    assert render(source, n=2, rules=["a", "b"]) == "1. a\n2. b\n"
    assert render("{{ a * b + 1 }} {{ 'x' ~ a ~ 'y' }} {{ [1, 2] }}", a=2, b=3) == "7 x2y [1, 2]"
    source = "{{ r | join(', ') }}|{{ d | join('+', attribute='k') }}"
    assert render(source, r=["a", 1], d=[{"k": 2}]) == "a, 1|2"
    source = "{{ a | upper }} {{ b.c }} {{ d | tojson }}"
    assert render(source, a="x", b={"c": 1}, d=["é"]) == 'X 1 ["é"]'


def test_values_that_are_no_text_are_written_as_json() -> None:
    """Not as Python; None is nothing."""
    source = "{{ a }} {{ b }} [{{ c }}]"
    assert render(source, a={"k": [True]}, b=False, c=None) == '{"k": [true]} false []'
    source = "{{ l | reverse }} {{ l | unique }}"
    assert render(source, l=["a", "b", "a"]) == '["a", "b", "a"] ["a", "b"]'


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.__class__ }}", "{{ x ~ y }}", "{{ x.format(1) }}", "{{ x | attr('upper') }}", "{{ [x, x] }}",
        "{{ 'a' * 10 }}", "{{ 10 ** 10 }}", "{{ 1 / 0 }}", "{{ y }}", "{% include 'x' %}", "{% if x %}",
        "{% macro f() %}{% endmacro %}", "{% set x %}a{% endset %}",
        "{% for a in x recursive %}{% endfor %}", "{% for i in range(3) %}{% endfor %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    ],
)  # fmt: skip
def test_what_a_prompt_may_not_do_is_refused(source: str) -> None:
    """Python's insides, calls, other files, names that are not there: an error that says so."""
    with pytest.raises(ConfigurationError, match=r"\w"):
        render(source, x="text")


def test_a_mistake_names_its_line() -> None:
    """Counted within the template."""
    with pytest.raises(ConfigurationError, match="line 2: "):
        prompt("one\ntwo {{ your name }}")


def test_numbers_are_calculated_and_texts_are_added() -> None:
    """What is refused of texts is allowed of numbers; `+` puts two texts together."""
    assert render("{{ a % b }} {{ 7.5 % 2 }} {{ a * b }} {{ a + b }}", a=7, b=2) == "1 1.5 14 9"
    assert render("{{ a + b }} {{ c + c }}", a="x", b="y", c=[1]) == "xy [1, 1]"
    assert render("{{ a * a }}", a=1e12) == "1e+24"
    with pytest.raises(ConfigurationError, match=r"numbers up to 10\^18"):
        render("{{ a * 1 }}", a=-1.1e18)


def test_a_text_may_be_as_long_as_the_bound() -> None:
    """Four million characters are allowed, one more is not, in one piece or in two."""
    text = "b" * 3_999_999

    assert len(render("{{ text }}c", text=text)) == 4_000_000
    assert len(render("{{ text + 'c' }}", text=text)) == 4_000_000
    for source in ("{{ text }}cc", "{{ text + 'cc' }}"):
        with pytest.raises(ConfigurationError, match="grows beyond 4,000,000"):
            render(source, text=text)


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.format | tojson }}", "{{ x['format'] }}", "{{ d.items | tojson }}", "{{ o }}",
        "{{ o | tojson }}", "{{ g | tojson }}", "{{ f }}", "{{ self }}", "{{ x | unique | tojson }}",
        "{% for a in x %}{{ loop | tojson }}{% endfor %}",
    ],
)  # fmt: skip
def test_no_address_in_memory_shows(source: str) -> None:
    """Methods and objects are not data; what filters make is a list."""
    values = {"x": "text", "d": {"a": 1}, "o": object(), "f": render, "g": iter("ab")}
    with contextlib.suppress(ConfigurationError):
        text = render(source, **values).lower()
        assert "0x" not in text
        assert "object" not in text


def test_comparisons_and_slices_mean_what_they_mean() -> None:
    """As in Jinja, also of texts and lists."""
    source = "{{ 1 < n <= 3 }} {{ 'b' in s }} {{ 'z' not in s }} {{ s[1:] ~ s[::-1] ~ s[0] }}"
    assert render(source, n=2, s="abc") == "true true true bccbaa"
    source = "{{ n == 2 and s != 'x' }} {{ l[:2] }} {{ l[-1] }}"
    assert render(source, n=2, s="a", l=[1, 2, 3]) == "true [1, 2] 3"
    source = "{{ 'a' in d }} {{ 4 in l }} {{ d.items }}"
    assert render(source, d={"a": 1, "items": 2}, l=[4]) == "true true 2"
    assert render("{{ 7 // 2 }} {{ 7 - 9 }} {{ -n }} {{ 2.5 | round }}", n=3) == "3 -2 -3 2.0"
    assert render("{% if n is divisibleby 3 and n is odd and s is string %}y{% endif %}", n=3, s="")
    assert render("{{ x.a | default('none') }} {{ y | default(1) }}", x={}) == "none 1"


def test_a_value_is_never_a_format() -> None:
    """`%` of a text would make a text of any length."""
    with pytest.raises(ConfigurationError, match=r"numbers up to 10\^18"):
        render("{% if x is even %}{% endif %}", x="%9999999d")
