"""One call as a person sees it: plain data that page, notebook and console render.

All texts are made visible here, and every figure is written here, so that all say the same. A
sentence is `[key, state, gap, text]`: `gap` is the white space in front of it. In the response, the
text is a list of pieces, of which every second one is a detail that a document contradicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any, Literal

from rag_eval_integrations._visible import counted, one_line, visible
from rag_eval_integrations.records import Evaluation, Labels, Score, Sentence, SentenceSupport
from rag_eval_integrations.records._repr import EARLIER, LEXICAL

View = dict[str, Any]

STATES = {
    "full": ("✓", "supported by the documents"),
    "partial": ("◐", "supported in part"),
    "none": ("✗", "not supported"),
    "unlabelled": ("?", "not labelled by the judge"),
    "source": ("–", "a list of sources, not judged"),
    "ru": ("RU", "relevant and used"),
    "r": ("R", "relevant, but not used"),
    "u": ("U", "used, but not relevant"),
}
"""State of a sentence → its sign, and in words; the first five are of the response."""
SIGNS = {state: sign for state, (sign, _) in STATES.items()}
WORDS = {state: words for state, (_, words) in STATES.items()}

_OF_TRACE = {
    "relevant_keys",
    "documents_without_relevant",
    "explanation",
    "utilized_keys",
    "relevant_unused_keys",
    "unsupported",
    "citations",
    "missing",
}
"""Evidence that the sentences themselves show."""
_MOST_BARS = 21
_ID = 200
"""Characters of an id below a question; all of it stands among the captured data."""
_VALUE = 20_000
"""Characters of a value of metadata; a page is to be read, and EVALS holds all of it."""
_GRAVEST_FIRST = ("none", "partial", "unlabelled", "full")


def figure(score: Score) -> str:
    """Write a score in a few characters: its value, or a dash and why there is none."""
    if score.value is None:
        return f"– ({page_text(score.unscored or score.status).replace('_', ' ')})"
    return f"{score.value:.2f}"


def verdict(score: Score) -> str:
    """Say whether a score reaches its threshold; empty without one."""
    if score.passed is None:
        return ""
    return f"{'✓ passed' if score.passed else '✗ failed'} (threshold {score.threshold:g})"


def view_of(evaluation: Evaluation) -> View:
    """Gather what a page shows of a call, but for its place (`at`) and its link (`row`).

    The id is empty where it is only the beginning of the row key. `said` is a response without
    sentences.
    """
    labels, error, bad = evaluation.labels, evaluation.error, bad_scores(evaluation)
    response = list(_response(evaluation))
    unlabelled = None if response or evaluation.response is None else page_text(evaluation.response)
    return {
        "link": one_line(evaluation.id, _ID),
        "id": "" if evaluation.row_key.startswith(evaluation.id) else one_line(evaluation.id, _ID),
        "question": page_text(evaluation.question),
        "turns": [[turn.role, page_text(turn.content)] for turn in evaluation.history],
        "reference": None if evaluation.reference is None else page_text(evaluation.reference),
        "error": error and page_text(f"failed ({error.stage}): {error.type}: {error.message}"),
        "patterns": [diagnosis.pattern for diagnosis in evaluation.diagnosis],
        "labelled": labels is not None,
        "response": response,
        "said": unlabelled,
        "support": list(_support(evaluation)),
        "documents": list(_documents(evaluation)),
        "judged": [] if labels is None else list(_judge_statements(labels)),
        "scores": [
            {**_score(name, score), "bad": bad.get(name, "")}
            for name, score in evaluation.scores.items()
        ],
        "warnings": list(
            {
                page_text(text): None
                for score in evaluation.scores.values()
                for text in score.warnings
            }
        ),
        "facts": list(_facts(evaluation)),
        "left_out": [
            [page_text(document.id or ""), page_text(document.text)]
            for document in (evaluation.capture.not_in_prompt if evaluation.capture else ())
        ],
    }


# --- Sentences


def _response(evaluation: Evaluation) -> Iterator[list[object]]:
    """Yield the sentences of the response, and the text between and behind them.

    Such text has neither key nor state.
    """
    labels, text = evaluation.labels, evaluation.response or ""
    end: int | None = 0
    for sentence, state in states_of(evaluation):
        details = () if labels is None else labels.contradictions.get(sentence.key, ())
        gap = " "
        if end is not None and sentence.start is not None:
            gap = text[end : sentence.start]
            if gap.strip():  # recorded sentences may leave something out
                yield ["", "", "", [page_text(gap)]]
                gap = ""
        yield [page_text(sentence.key), state, page_text(gap), _pieces(sentence.text, details)]
        end = sentence.end
    if end and text[end:].strip():
        yield ["", "", "", [page_text(text[end:])]]


def _pieces(text: str, details: Sequence[str]) -> list[str]:
    """Split a sentence at the details that a document contradicts: every second piece is one.

    A detail that is not found in it is left out.
    """
    places: list[tuple[int, int]] = []
    for detail in details:
        words = detail.partition(" (documents:")[0]
        for part in (words, words.partition(" ")[2]):  # with the kind of the detail, or without
            start = text.find(part) if part else -1
            end = start + len(part)
            if start >= 0 and all(end <= a or start >= b for a, b in places):
                places.append((start, end))
                break
    pieces, before = [], 0
    for start, end in sorted(places):
        pieces += [page_text(text[before:start]), page_text(text[start:end])]
        before = end
    return [*pieces, page_text(text[before:])]


def _support(evaluation: Evaluation) -> Iterator[View]:
    """Yield the judge's verdict on each claim of the response, the gravest first.

    Nothing without labels. Keys that no document sentence has stand apart, under `other`.
    """
    labels = evaluation.labels
    if labels is None:
        return
    known = {sentence.key for sentence in evaluation.sentences.documents}
    faults = citation_faults(evaluation)
    for sentence in sorted(
        evaluation.sentences.claims,
        key=lambda sentence: _GRAVEST_FIRST.index(labels.support(sentence.key)),
    ):
        entry = labels.entry(sentence.key)
        keys = () if entry is None else entry.supporting_sentence_keys
        wrong = faults.get(sentence.key, [])
        said = [*wrong, entry.explanation if entry else ""]
        chance = (labels.supported_probabilities or {}).get(sentence.key)
        yield {
            "key": page_text(sentence.key),
            "state": labels.support(sentence.key),
            "evidence": [page_text(key) for key in keys if key in known],
            "other": [page_text(key) for key in keys if key not in known],
            "faults": len(wrong),
            "why": page_text("; ".join(filter(None, said))),
            "against": [*map(page_text, labels.contradictions.get(sentence.key, ()))],
            "chance": "" if chance is None else f"{chance:.2f}",
        }


def _documents(evaluation: Evaluation) -> Iterator[View]:
    """Yield what the page shows of each document, sentence by sentence.

    A document without sentences is yielded, too.
    """
    uses = uses_of(evaluation.labels)
    by_number: dict[str, list[Sentence]] = {
        str(number): [] for number in range(len(evaluation.document_ids))
    }
    for sentence in evaluation.sentences.documents:
        by_number.setdefault(sentence.key.rstrip(ascii_lowercase), []).append(sentence)
    names = {str(number): name for number, name in enumerate(evaluation.document_ids)}
    earlier = set(map(str, evaluation.earlier))
    for number, sentences in by_number.items():
        listed: list[list[str]] = []
        end: int | None = 0
        for key, text, start, stop in sentences:
            # White space of the kind that stood in front of it.
            apart = 1 if start is None or end is None else start - end
            gap = " " if apart == 1 else "\n" if apart > 0 else ""
            listed.append(
                [page_text(key), uses.get(key, ""), gap if listed else "", page_text(text)]
            )
            end = stop
        yield {
            "number": page_text(number),
            "name": page_text(names.get(number) or ""),
            "note": _note(
                [state for _, state, *_ in listed],
                evaluation.labels is not None,
                earlier=number in earlier,
            ),
            "sentences": listed,
        }


def _note(states: Sequence[str], labelled: bool, *, earlier: bool) -> str:
    """Say how many sentences of a document are relevant and used.

    Only their number without labels; `empty` without sentences. One of an earlier turn is said to
    be that.
    """
    count = counted(len(states), "sentence")
    if earlier:  # whether it is relevant counts nowhere, and not every judge says it
        return f"{EARLIER}, {_note(states, any(states), earlier=False)}"
    if not states or not labelled:
        return count if states else "empty"
    if not any(states):
        return f"nothing relevant in {count}"
    relevant = sum("r" in state for state in states)
    used = sum("u" in state for state in states)
    return f"{relevant} relevant and {used} used of {count}"


def _judge_statements(labels: Labels) -> Iterator[list[str]]:
    """Yield what the judge said of the whole call, and what was wrong in its own reply.

    Yields pairs of a heading and a text, as lists. Empty statements are left out.
    """
    statements = (
        ("The judge on the documents", labels.relevance_explanation),
        ("The judge on the answer", labels.overall_supported_explanation),
        ("Keys that the judge wrote and no sentence has", ", ".join(labels.unknown_keys)),
        ("Answer sentences that the judge left out", ", ".join(labels.missing_keys)),
    )
    yield from ([heading, page_text(text)] for heading, text in statements if text.strip())
    if labels.overall_conflict:
        verdict = "supported" if labels.overall_supported else "not supported"
        words = f"It called the whole answer {verdict}, which its sentences contradict."
        yield ["The judge contradicts itself", words]


# --- Scores


def _score(name: str, score: Score) -> View:
    """Return what the page shows of a score.

    Evidence that the sentences themselves show is left out.
    """
    evidence = score.evidence or {}
    more = [
        [page_text(key), _value(value)] for key, value in evidence.items() if key not in _OF_TRACE
    ]
    listed = evidence.get("steps")
    steps = [page_text(str(step)) for step in (listed if isinstance(listed, list) else ())]
    return {
        "name": page_text(name),
        "figure": figure(score),
        "verdict": verdict(score),
        "reason": page_text(score.reason or ""),
        "made": list(_maker_lines(score)),
        "bars": _bars(score.distribution or {}),
        "steps": steps,
        "more": [pair for pair in more if pair[0] not in ("steps", "reply") or not steps],
    }


def _maker_lines(score: Score) -> Iterator[str]:
    """Yield how a value was estimated: raw score, method, standard error and estimate."""
    if score.scale is not None and score.raw is not None and score.scale != (0.0, 1.0):
        low, high = score.scale
        yield f"{score.raw:.2f} on the scale from {low:g} to {high:g}"
    if score.method not in (None, "labels", "mean"):
        yield page_text(f"by {score.method}")
        if score.n is not None:
            yield f"n = {score.n}"
    if score.std_error is not None:
        yield f"standard error {score.std_error:.2f}"
    if score.mass is not None:
        yield f"score mass {score.mass:.2f}"
    if score.estimate is not None:
        error = score.estimate.std_error
        spread = "" if error is None else f" ± {error:.2f}"
        yield page_text(f"estimate {score.estimate.value:.2f}{spread} ({score.estimate.method})")


def _bars(distribution: Mapping[str, float]) -> list[list[str]]:
    """List the bars of a distribution of scores: score, probability and width.

    Of more than 21, the likeliest.
    """
    if len(distribution) > _MOST_BARS:
        likely = sorted(distribution, key=lambda rating: -distribution[rating])[:_MOST_BARS]
        distribution = {name: share for name, share in distribution.items() if name in likely}
    return [
        [page_text(name), f"{share:.2f}", drawn(share)]
        for name, share in sorted(distribution.items(), key=lambda item: (len(item[0]), item[0]))
    ]


# --- What else is known of a call


def _facts(evaluation: Evaluation) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield what else is known of a call, by heading: pairs of a name and a value.

    Captured data and metadata are left out where there are none.
    """
    judge, usage, capture = evaluation.judge, evaluation.usage, evaluation.capture
    call = [("id", evaluation.id), ("flags", "; ".join(map(flag_words, evaluation.flags)))]
    yield "Call", _pairs(call)
    if capture is not None:
        observed = [
            ("framework", capture.framework),
            ("status", capture.status),
            ("documents seen in", capture.documents_from),
            ("retrievers", list(capture.retrievers)),
            ("latency", "" if capture.latency_s is None else f"{capture.latency_s:.3f} s"),
            ("tags", list(capture.tags)),
            ("run", capture.run_id),
            *((name, value) for name, value in capture.metadata.items()),
        ]
        yield "Captured", _pairs(observed)
    if evaluation.metadata:
        yield "Metadata", _pairs(list(evaluation.metadata.items()))
    cost = "" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    judge_facts = [
        ("judge", judge.name),
        ("model", judge.model),
        ("version", judge.version),
        ("requests", usage.requests or None),
        ("of these failed", usage.failed or None),
        ("prompt tokens", usage.prompt_tokens or None),
        ("completion tokens", usage.completion_tokens or None),
        ("cost", cost),
        *_common_provenance(evaluation),
    ]
    yield "Judge and cost", _pairs(judge_facts)


_MADE_BY = (
    "prompt_version",
    "formulas",
    "relevance_baseline",
    "calibration",
    "splitter",
    "windows",
)
"""Provenance of scores, without what is said of the judge."""


def _common_provenance(evaluation: Evaluation) -> Iterator[tuple[str, object]]:
    """Yield the provenance that all scores share; nothing without scores."""
    makers = [score.by for score in evaluation.scores.values()]
    for name in _MADE_BY:
        values = [getattr(by, name) for by in makers]
        if values and all(value == values[0] for value in values):
            yield name.replace("_", " "), values[0]


def _pairs(items: Sequence[Sequence[object]]) -> list[list[str]]:
    """Return names and values as text, without empty ones."""
    return [
        [page_text(str(name)), _value(value)]
        for name, value in items
        if value is not None and value not in ("", [], {})
    ]


def _value(value: object) -> str:
    """Write a value as text: a list of texts with commas, other values as JSON.

    Of a text above 20,000 characters, the beginning and its length.
    """
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        text = ", ".join(value)
    else:
        text = json.dumps(value, ensure_ascii=False)
    if len(text) > _VALUE:
        return f"{page_text(text[:_VALUE])}… ({len(text):,} characters)"
    return page_text(text)


# --- What is told of a call apart


def unsupported(
    evaluation: Evaluation, most: int | None = None
) -> list[tuple[Sentence, Literal["none", "partial"], SentenceSupport]]:
    """List the first response sentences that the documents do not fully support, and why.

    Sentences without a verdict are left out; empty without labels. None for `most` lists all.
    """
    labels = evaluation.labels
    if labels is None:
        return []
    against = []
    for sentence in evaluation.sentences.claims:
        support, entry = labels.support(sentence.key), labels.entry(sentence.key)
        if entry is not None and (support == "none" or support == "partial"):
            against.append((sentence, support, entry))
    return against[:most]


_OF_PATTERN = {
    "hallucination": {"adherence": "none", "supported_fraction": "partial"},
    "nothing_relevant_retrieved": {"context_relevance": "none"},
    "context_ignored": {"context_utilization": "partial"},
    "incomplete": {"completeness": "partial"},
}
"""Pattern → the scores that show it, and the state whose look and sign they have."""
_NOT_OF_WORDS = ("context_utilization", "completeness")
"""Scores of which a judge that compares words cannot tell a call's value."""


def bad_scores(evaluation: Evaluation) -> dict[str, str]:
    """Map scores with a bad value to the state whose look they have: `none` or `partial`.

    A value is bad if it is 0, if it is below its threshold, or if it shows a pattern of the call. A
    score without a value is left out.
    """
    bad: dict[str, str] = {}
    for diagnosis in evaluation.diagnosis:
        bad |= _OF_PATTERN.get(diagnosis.pattern, {})
    if LEXICAL in evaluation.flags:
        bad = {name: state for name, state in bad.items() if name not in _NOT_OF_WORDS}
    values = {name: score.value for name, score in evaluation.scores.items()}
    low = (name for name, score in evaluation.scores.items() if score.passed is False)
    bad |= dict.fromkeys([*(name for name, value in values.items() if value == 0), *low], "none")
    return {name: state for name, state in bad.items() if values.get(name) is not None}


def states_of(evaluation: Evaluation) -> Iterator[tuple[Sentence, str]]:
    """Yield the response sentences, each with its state; it is empty without labels."""
    labels, sentences = evaluation.labels, evaluation.sentences
    sources = set(sentences.not_claims)
    for sentence in sentences.response:
        state = "" if labels is None else labels.support(sentence.key)
        yield sentence, "source" if sentence.key in sources else state


def citation_faults(evaluation: Evaluation) -> dict[str, list[str]]:
    """Map response sentences to what is wrong with their citations, by the metric `Citations`."""
    score = evaluation.scores.get("citation_precision")
    evidence: Any = (score.evidence if score else None) or {}
    faults: dict[str, list[str]] = {}
    for each in evidence.get("citations", ()):
        if each["state"] != "right":
            key = each["key"] or evaluation.sentences.claims[-1].key
            faults.setdefault(key, []).append(f"{each['state']} citation {each['marker']}")
    for key in evidence.get("missing", ()):
        faults.setdefault(key, []).append("no citation of a document that supports it")
    return faults


def uses_of(labels: Labels | None) -> dict[str, str]:
    """Map document sentences to their use: `r` relevant, `u` used, `ru` both.

    Other sentences are left out; empty without labels.
    """
    relevant = set(labels.all_relevant_sentence_keys) if labels else set()
    used = set(labels.all_utilized_sentence_keys) if labels else set()
    return {key: "r" * (key in relevant) + "u" * (key in used) for key in relevant | used}


# --- Texts of other people, and lengths


def page_text(text: str) -> str:
    r"""Escape the characters of a text that act or hide, as in `\x1b`; its lines stay.

    A tab becomes four spaces, and `\r\n` a line end.
    """
    if text.isascii() and text.isprintable():
        return text
    return visible(text.replace("\r\n", "\n").replace("\t", "    "))


def drawn(share: float | None, size: float = 100) -> str:
    """Write a share of `size` as a length in an SVG; 0 for None.

    Below 0 it counts as 0, above 1 as 1.
    """
    return f"{size * min(1.0, max(0.0, share or 0.0)):.2f}".rstrip("0").rstrip(".")


_FLAGS = {
    "lexical_estimate": "the judge compared words, no model read the call",
    "contradiction": "a document contradicts a detail of the answer",
    "doubt_spread": "a sentence of the answer joins words of several documents",
    "local_reader": "a local model read the call",
    "suspected_injection": "a text addresses the judge",
    "unknown_keys": "the judge named sentences that do not exist",
    "missing_keys": "the judge labelled some sentences only",
    "overall_conflict": "the judge's verdict on the whole answer contradicts its labels",
    "capture_error": "the app raised an error",
    "capture_aborted": "the app was stopped, or its stream was not read to the end",
    "capture_interrupted": "the app waits for somebody to go on",
    "unsure": "its probability was near the limit",
    "unlabelled": "it gave no labels",
    "no_probability": "it gave no probability",
    "rule": "the rule of the cascade said so",
}


def flag_words(flag: str) -> str:
    """Write a flag and its meaning, as far as this library gave it.

    A flag of another origin stands alone.
    """
    place, _, why = flag.partition("_")
    meaning = _FLAGS.get(flag, "")
    if place in ("first", "second"):
        meaning = f"passed on by the {place} judge: {_FLAGS.get(why, why)}"
    elif place == "cascade":
        meaning = f"labelled by the {why} judge"
    return page_text(f"{flag}: {meaning}" if meaning else flag)
