"""The room's public names."""

import rag_eval_integrations.prompt_tests as package


def test_every_exported_name_is_shown_under_the_package() -> None:
    """The list is sorted, and help and tracebacks name the package, not a private module."""
    assert sorted(package.__all__) == package.__all__
    for name in package.__all__:
        assert getattr(package, name).__module__ == package.__name__
