"""The exception tree that `errors.py` draws is the one that exists."""

from __future__ import annotations

import pickle
import re

from rag_eval_integrations import errors


def test_the_drawn_tree_is_the_real_one() -> None:
    """Every class stands in the docstring, indented under its base."""
    drawn = re.findall(r"^ {4}([│├└─ ]*)(\w+Error)\b", errors.__doc__ or "", re.M)

    found = [value for value in vars(errors).values() if isinstance(value, type)]
    real = {value for value in found if issubclass(value, errors.RagEvalError)}
    depths = {value.__name__: len(real & {*value.__mro__}) - 1 for value in real}
    assert {name: len(indent) // 4 for indent, name in drawn} == depths


def test_an_input_error_says_file_line_field_and_why() -> None:
    """Whichever of the four are known, also in another process."""
    error = errors.InputError("is missing", field="documents[2].text", line=7, path="a.jsonl")

    assert str(error) == "a.jsonl: line 7: field `documents[2].text`: is missing"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(errors.InputError("not JSON")) == "not JSON"


def test_a_missing_extra_names_the_command() -> None:
    """And is an ImportError, which is what a failed import raises."""
    error = errors.MissingDependencyError("langchain-core", "langchain")

    assert isinstance(error, ImportError)
    assert "pip install 'rag-eval-integrations[langchain]'" in str(error)


def test_what_a_judge_wrote_stays_attached() -> None:
    """The raw answer is not lost with the exception."""
    assert errors.JudgeOutputError("no JSON", "hello").raw == "hello"


def test_an_argument_that_was_not_given_has_no_value() -> None:
    """The message shows none; `why` is the reason alone."""
    error = errors.ConfigurationError("api_key", None, "no API key: set X", missing=True)

    assert str(error) == "`api_key`: no API key: set X"
    assert (error.why, error.missing) == ("no API key: set X", True)
    assert str(errors.ConfigurationError("judge", None, "pass one")) == "`judge` = None: pass one"


def test_what_a_message_quotes_does_not_act() -> None:
    """Names of a file's scores and judges stand in it, and a traceback escapes nothing."""
    error = errors.ConfigurationError("name", "x", "they have \x1b[31mred, \u202eturned")

    assert str(error) == "`name` = 'x': they have \\x1b[31mred, \\u202eturned"
