"""YAML that somebody else wrote, looked at before it is read: short texts can take minutes."""

from __future__ import annotations

_MOST_CHARACTERS = 200_000
_MOST_ALIASES = 20
"""Aliases of aliases double with each: a kilobyte of YAML would be gigabytes of values."""
_DEEPEST = 64
"""Reading takes the square of the depth: 53 s for 20,000 brackets that open and never close."""


def check_yaml(text: str) -> None:
    """Go through a text's tokens, without making anything of it.

    Raises:
        ValueError: too long, too deep, or more aliases than anybody writes.
        yaml.YAMLError: no YAML.
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
            raise ValueError(f"nested more than {_DEEPEST} deep")
        if aliases > _MOST_ALIASES:
            raise ValueError(f"more than {_MOST_ALIASES} aliases")
