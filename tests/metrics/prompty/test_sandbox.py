"""What a template of a prompt may do, and what stops one that wants more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.metrics.prompty._sandbox import (
    CompiledTemplate,
    PromptTemplateError,
    Texts,
)


def render(source: str, **values: object) -> str:
    return CompiledTemplate(source).render(values)


@settings(deadline=None)  # on a busy machine the first example takes longer
@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_value_is_inserted_as_it_is(value: str) -> None:
    """Whatever looks like a template in it stays text, unescaped."""
    assert render("<{{x}}>", x=value) == f"<{value}>"
    assert render("{{ x }}", x="{{ 7 * 7 }}{% if y %}") == "{{ 7 * 7 }}{% if y %}"


def test_prompts_branch_loop_and_calculate() -> None:
    """What real prompt files do."""
    source = "{% if n > 1 %}{% for r in rules %}{{ loop.index }}. {{ r }}\n{% endfor %}{% endif %}"
    assert render(source, n=2, rules=["a", "b"]) == "1. a\n2. b\n"
    assert render("{{ a * b + 1 }} {{ 'x' ~ a ~ 'y' }} {{ [1, 2] }}", a=2, b=3) == "7 x2y [1, 2]"
    assert render(
        "{{ r | join(', ') }}|{{ d | join('+', attribute='k') }}", r=["a", 1], d=[{"k": 2}]
    )
    assert render("{{ a | upper }} {{ b.c }} {{ d | tojson }}", a="x", b={"c": 1}, d=["é"]) == (
        'X 1 ["é"]'
    )


def test_values_that_are_no_text_are_written_as_json() -> None:
    """Not as Python; None is nothing; texts are numbered paragraphs, and a list in a loop."""
    assert render("{{ a }} {{ b }} [{{ c }}]", a={"k": [True]}, b=False, c=None) == (
        '{"k": [true]} false []'
    )
    assert render("{{ t }}", t=Texts(["one", "two"])) == "[1] one\n\n[2] two"
    assert render("{{ l | reverse }} {{ l | unique }}", l=["a", "b", "a"]) == (
        '["a", "b", "a"] ["a", "b"]'
    )
    assert render("{% for x in t %}{{ x }};{% endfor %}", t=Texts(["one", "two"])) == "one;two;"


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.__class__ }}",
        "{{ x.format }}",
        "{{ x ~ y }}",
        "{{ x() }}",
        "{{ x.format(1) }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% macro f() %}{% endmacro %}",
        "{% block b %}{% endblock %}",
        "{% set x %}a{% endset %}",
        "{% for i in range(3) %}{% endfor %}",
        "{% for a in x recursive %}{% endfor %}",
        "{{ cycler }}",
        "{{ x | attr('upper') }}",
        "{{ x | center(100) }}",
        "{{ [x, x] }}",
        "{{ 'a' * 10 }}",
        "{{ '%5d' % 3 }}",
        "{{ 10 ** 10 }}",
        "{{ 1e200 * 1e200 }}",
        "{{ 1 / 0 }}",
        "{{ your name }}",
        "{% if x %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ y }}",
        "{{ x.nothing }}",
    ],
)
def test_what_a_prompt_may_not_do_is_refused(source: str) -> None:
    """Python's insides, calls, other files, names that are not there: an error that says so."""
    with pytest.raises(PromptTemplateError) as raised:
        render(source, x="text")
    assert str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        "{% set a = x %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}",
        "{% set a = x %}" + "{% set a = a + a %}" * 40 + "{{ a }}",
        "{{ x | join(x) | join(x) | join(x) }}",
        "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in x %}{{ big }}{% endfor %}",
        "{{ x" + " | tojson" * 40 + " }}",
        "{{ big ~ big }}",
        "{{ x }}" * 30_000,
    ],
)
def test_nothing_grows_without_end(source: str) -> None:
    """Doubling, nested loops and long texts stop at a bound."""
    with pytest.raises(PromptTemplateError):
        render(source, x='"' * 1000, big="b" * 3_000_000)


def test_variables_are_known_before_rendering() -> None:
    """Also those that are only asked about; not those that the template sets itself."""
    template = CompiledTemplate("{% if a %}{{ b.c }}{% endif %}{% for d in e %}{{ d }}{% endfor %}")

    assert template.variables == {"a", "b", "e"}


def test_a_mistake_names_its_line() -> None:
    """Counted within the template."""
    with pytest.raises(PromptTemplateError) as raised:
        CompiledTemplate("one\ntwo {{ your name }}")

    assert raised.value.line == 2


@pytest.mark.parametrize("name", ["unique | list", "list"])
def test_filters_over_a_long_text_in_a_loop_are_stopped(name: str) -> None:
    """Each pays for the time it takes; 20,000 sorts of half a megabyte would take hours."""
    with pytest.raises(PromptTemplateError, match="filters read more than"):
        render(
            f"{{% for c in x %}}{{% if x | {name} %}}{{% endif %}}{{% endfor %}}", x="b" * 500_000
        )


def test_a_text_that_takes_too_long_to_sort_is_refused() -> None:
    """Before any of it is sorted; what is joined pays for every part."""
    with pytest.raises(PromptTemplateError, match="filters read more than"):
        render("{{ x | sort | length }}", x="b" * 3_000_000)
    with pytest.raises(PromptTemplateError, match="grows beyond"):
        render("{{ x | join }}", x="b" * 1_500_000)


def test_filters_filter() -> None:
    """What is paid for changes nothing."""
    assert render("{{ x | sort | length }}", x="ba") == "2"
    assert render("{{ x | title | trim }}, {{ x | tojson }}", x=" ba") == 'Ba, " ba"'


def test_numbers_are_calculated_and_texts_are_added() -> None:
    """What is refused of texts is allowed of numbers; `+` puts two texts together."""
    assert render("{{ a % b }} {{ 7.5 % 2 }} {{ a * b }} {{ a + b }}", a=7, b=2) == "1 1.5 14 9"
    assert render("{{ a + b }} {{ c + c }}", a="x", b="y", c=[1]) == "xy [1, 1]"
    assert render("{{ a * a }}", a=1e12) == "1e+24"
    with pytest.raises(PromptTemplateError, match="too large"):
        render("{{ a * 1 }}", a=-1.1e12)


def test_a_text_may_be_as_long_as_the_bound() -> None:
    """Four million characters are allowed, one more is not, in one piece or in two."""
    text = "b" * 3_999_999

    assert len(render("{{ text }}c", text=text)) == 4_000_000
    assert len(render("{{ text + 'c' }}", text=text)) == 4_000_000
    for source in ("{{ text }}cc", "{{ text + 'cc' }}"):
        with pytest.raises(PromptTemplateError, match="grows beyond 4,000,000"):
            render(source, text=text)
