"""`rag_eval_integrations.llama_index`: names resolve when they are used, and cost what they need."""

from __future__ import annotations

from processes import fresh_python

from rag_eval_integrations import llama_index


def test_are_sorted_and_resolve() -> None:
    """`__all__` is the list of names, and each of them exists."""
    names = llama_index.__all__

    assert names == sorted(names)
    for name in names:
        assert getattr(llama_index, name).__name__ == name
    assert set(names) <= set(dir(llama_index))


def test_of_capture_do_not_load_the_framework() -> None:
    """The handler needs the instrumentation package alone; `llama_index.core` takes 5 s.

    With a function as target it loads nothing that evaluates, and never the other framework.
    """
    heavy = [f"rag_eval_integrations.{n}" for n in ("evaluator", "background", "judges", "metrics")]
    code = (
        "import sys\n"
        "from rag_eval_integrations.llama_index import RagEvalHandler\n"
        "with RagEvalHandler(print): pass\n"
        f"heavy = ['llama_index.core', 'langchain_core', *{heavy}]\n"
        "print(*[name for name in heavy if name in sys.modules])"
    )

    done = fresh_python(code, check=True)

    assert done.stdout.strip() == ""
