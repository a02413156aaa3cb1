"""`rag-eval explain`: what a judge was asked about a call, its labels, and the scores of them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.cli._arguments import ExplainOptions
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._terminal import print_stdout, write_stdout
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset.rows import labelled_from_evaluation
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._call_view import STATES, citation_faults
from rag_eval_integrations.judges import _prompt as prompt
from rag_eval_integrations.judges.llm import prompts_of
from rag_eval_integrations.records import By, Evaluation, Score
from rag_eval_integrations.records._repr import EARLIER
from rag_eval_integrations.sentences._citations import without_citations

_MOST_IDS = 1_000
"""Ids that are kept for a message."""
_OF_REFERENCE = "context_recall"
"""The score whose labels are of the reference; a row does not keep them."""


def explain(options: ExplainOptions) -> int:
    """Print prompt, labels and scores of the calls with an id; return the exit code.

    Returns:
        2 for invalid lines, unless `skip_invalid`; else 0.

    Raises:
        ConfigurationError: no call has the id.
        OSError: the file cannot be read.
    """
    evals = Input(options.evals)
    evals.check(folder=True)
    bad = BadRows(evals)
    others: list[str] = []
    calls = explained = 0
    for evaluation in bad.values(read_evaluations(evals)):
        calls += 1
        if evaluation.id != options.call:
            others += [evaluation.id] if len(others) < _MOST_IDS else []
            continue
        explained += 1
        for line in _head(evaluation):
            print_stdout(line)
        _print_prompt(evaluation)
        for line in (*_labels(evaluation), *_scores(evaluation)):
            print_stdout(line)
    if not explained:
        near = get_close_matches(options.call, others, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        why = f"is the id of none of {counted(calls, 'call')} in {evals}{hint}"
        raise ConfigurationError("--call", options.call, why)
    return bad.end("left out", skip=options.skip_invalid)


def _head(evaluation: Evaluation) -> Iterator[str]:
    """Yield the lines about a call, its judge and its error."""
    judge = evaluation.judge
    yield f"Call {one_line(evaluation.id)}: {one_line(evaluation.question, 200)}"
    model = f", model {judge.model}" if judge.model else ""
    version = f", version {judge.version}" if judge.version else ""
    yield one_line(f"Judge {judge.name}{model}{version}")
    if evaluation.error is not None:
        error = evaluation.error
        yield one_line(f"Failed ({error.stage}): {error.type}: {error.message}")


def _print_prompt(evaluation: Evaluation) -> None:
    """Rebuild and print the messages of each window, or say why that is not possible."""
    scores = evaluation.scores.items()
    makers = [score.by for name, score in scores if name != _OF_REFERENCE]
    ours = [by for by in makers if (by.prompt_version or "").startswith(prompt.NAME)]
    print_stdout("")
    if not ours:
        print_stdout("No prompt: the row names no version of the labelling prompt.")
        return
    version, windows = ours[0].prompt_version or "", ours[0].windows or 1
    wording = prompt.Wording.of(version, evaluation.judge.instructions)
    call = without_citations(labelled_from_evaluation(evaluation).call)
    anew = prompt.version_of(call, wording)
    if anew != version:
        lacks = "".join(_missing_parts(evaluation, version))
        print_stdout(
            f"No prompt: it was {one_line(version)}, and made anew from this row it would be "
            f"{anew}{lacks}."
        )
        return
    prompts = prompts_of(call, wording)
    print_stdout(f"Prompt {anew}")
    if len(prompts) != windows:
        print_stdout(
            f"It was sent in {windows} windows, by another `window_characters` or in halves after "
            f"an answer that was cut off; this is the call in {len(prompts)}."
        )
    for number, messages in enumerate(prompts, 1):
        of = f" of window {number} of {len(prompts)}" if len(prompts) > 1 else ""
        for message in messages:
            write_stdout(f"\n[{message.role} message{of}]\n{message.content}\n")


def _missing_parts(evaluation: Evaluation, version: str) -> Iterator[str]:
    """Yield the parts of the recorded prompt that the row lacks, in words."""
    for part, name, kept in (
        (prompt.HISTORY_PART, "history", evaluation.history),
        (prompt.HEADERS_PART, "document_headers", evaluation.document_headers),
        ("/instructions-", "judge.instructions", evaluation.judge.instructions),
    ):
        if part in version and not kept:
            yield f"; it lacks `{name}`"


def _labels(evaluation: Evaluation) -> Iterator[str]:
    """Yield the lines about the labels, with the letters of the formulas."""
    labels = evaluation.labels
    yield ""
    if labels is None:
        yield "No labels"
        return
    yield "Labels"
    if evaluation.earlier:
        numbers = ", ".join(map(str, evaluation.earlier))
        yield f"Document {numbers} is {EARLIER}: R, U and T of the scores leave it out"
    for letter, what, keys in (
        ("R", "relevant", labels.all_relevant_sentence_keys),
        ("U", "used", labels.all_utilized_sentence_keys),
    ):
        yield one_line(f"{letter}, {what}: {' '.join(keys) or 'none'}")
    faults = citation_faults(evaluation)
    for sentence in evaluation.sentences.claims:
        entry, state = labels.entry(sentence.key), labels.support(sentence.key)
        keys = entry.supporting_sentence_keys if entry else ()
        by = f" ({' '.join(keys)})" if keys else ""
        why = f": {entry.explanation}" if entry and entry.explanation else ""
        cited = "".join(f"; {fault}" for fault in faults.get(sentence.key, ()))
        yield one_line(f"{sentence.key}, {STATES[state][1]}{by}{cited}{why}")


_SHARES = {"context_relevance": "|R| / T", "completeness": "|R∩U| / |R|"}
_USED = {"gpt-labeling": "|U| / |R|", "ragbench": "|U| / T"}


def _scores(evaluation: Evaluation) -> Iterator[str]:
    """Yield a line per score: its value, its formula, and the reason with the numbers."""
    yield ""
    yield "Scores (T is the number of document sentences; docs/method.md)"
    for name, score in evaluation.scores.items():
        formula = _formula(name, score.by)
        follows = f" = {formula}" if formula and score.value is not None else ""
        value = f"{score.value:.2f}" if score.value is not None else _status_of(score)
        yield one_line(f"{name} {value}{follows}: {score.reason or 'no reason is given'}")


def _formula(name: str, by: By) -> str:
    """Return the formula of a TRACe score; empty for a score without one."""
    if name == "context_utilization":
        return _USED.get(by.formulas or "", "")
    if name == "context_relevance" and by.relevance_baseline is not None:
        return f"|R| / {by.relevance_baseline}"
    return _SHARES.get(name, "")


def _status_of(score: Score) -> str:
    """Return the status of a score without a value, with its code."""
    return f"{score.status} ({score.unscored})" if score.unscored else score.status
