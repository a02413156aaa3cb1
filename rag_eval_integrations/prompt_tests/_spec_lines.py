"""A specification as the lines of `rules.txt`, `inverse_rules.txt` and so on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag_eval_integrations.prompt_tests.records import Rule, Spec

NUMBER = re.compile(r"^\s*(\d{1,3})\s*[.):]\s+")
"""The number of a rule in front of its inverse rule."""


def inverse_by_rule(lines: Sequence[str], rules: int) -> dict[int, str] | list[str]:
    """Return inverse rules by the number at the start of each line, or in the rules' order.

    Lines are numbered if some rules have no inverse, so that the others keep their rules. They are
    read by number only if every line has one and there are fewer lines than rules; otherwise, the
    lines are returned unchanged, in their order.

    Args:
        lines: lines of the file.
        rules: number of output rules.
    """
    matches = [NUMBER.match(line) for line in lines]
    if lines and all(matches) and len(lines) < rules:
        numbered = [(match, line) for match, line in zip(matches, lines, strict=True) if match]
        return {int(match[1]): line[match.end() :] for match, line in numbered}
    return list(lines)


def inverse_lines(spec: Spec) -> list[str]:
    """Return inverse rules as lines, which `inverse_by_rule` assigns to the same rules.

    Where some rules have none, each line begins with the number of the rule that it contradicts.
    """
    inverse = spec.inverse_rules
    if len(inverse) < len(spec.output_rules) and all(rule.of_rule is not None for rule in inverse):
        places = {rule.id: place for place, rule in enumerate(spec.output_rules, start=1)}
        return [f"{places.get(rule.of_rule or 0, rule.of_rule)}. {rule.text}" for rule in inverse]
    return [rule.text for rule in inverse]


def make_spec(
    intent: str,
    input_spec: Sequence[str],
    rules: Sequence[str],
    inverse: dict[int, str] | Sequence[str],
    *,
    cut: int | None = None,
) -> Spec:
    """Return a specification: rules are numbered from 1, and inverse rules after them.

    Args:
        intent: the prompt's purpose.
        input_spec: rules for valid inputs.
        rules: output rules.
        inverse: inverse rules, by the number of their rule or in the order of the rules. In a list
            of another length it is not known which rule each contradicts.
        cut: number of rules, and of inverse rules, that are numbered first, in PromptPex's way; the
            others get the numbers after these. None for all.
    """
    first, firsts = (
        len(texts) if cut is None else min(cut, len(texts)) for texts in (rules, inverse)
    )
    direct = [
        Rule(id=number if number <= first else number + firsts, text=text)
        for number, text in enumerate(rules, start=1)
    ]
    pairs: Iterable[tuple[int | None, str]]
    if isinstance(inverse, dict):
        pairs = inverse.items()
    else:
        matched = len(inverse) == len(rules)
        pairs = ((i if matched else None, text) for i, text in enumerate(inverse, start=1))
    opposite = [
        Rule(
            id=number + (first if number <= firsts else len(rules)),
            text=text,
            inverse=True,
            of_rule=direct[of - 1].id if of is not None and 0 < of <= len(direct) else of,
        )
        for number, (of, text) in enumerate(pairs, start=1)
    ]
    return Spec(intent=intent, input_spec=tuple(input_spec), rules=(*direct, *opposite))
