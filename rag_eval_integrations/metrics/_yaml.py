"""Bounds on untrusted YAML, checked before it is loaded: a short text can take minutes to load."""

from __future__ import annotations

_MOST_CHARACTERS = 200_000
_MOST_ALIASES = 20
"""Each alias of an alias doubles the values: a kilobyte of YAML would become gigabytes."""
_DEEPEST = 64
"""Reading time grows with the square of the depth: 53 s for 20,000 unclosed brackets."""


def check_yaml(text: str) -> None:
    """Refuse a text whose YAML is too large to load safely; only its events are read.

    Raises:
        ValueError: the text is too long, is nested too deeply, or has too many aliases.
        yaml.YAMLError: the text is not YAML.
    """
    import yaml  # noqa: PLC0415  # 20 ms, and only where a file is read

    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"more than {_MOST_CHARACTERS:,} characters of YAML")
    depth = aliases = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} levels deep")
        if aliases > _MOST_ALIASES:
            raise ValueError(f"more than {_MOST_ALIASES} aliases")
