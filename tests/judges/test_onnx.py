"""`OnnxJudge` on tiny ONNX models that read: they compare the tokens of premise and hypothesis."""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import tiny_readers as tiny
from forked import forked

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, JudgeError, MissingDependencyError
from rag_eval_integrations.judges import Judge, OnnxJudge, judge_from
from rag_eval_integrations.judges._local_model import Pooling
from rag_eval_integrations.records import Evaluation, Labelling, SentencizedCall, Turn
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.testing import JudgeContract

for _package in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(_package)

QUESTION = "Who built the bridge over the river?"
DOCUMENTS = (
    "The old bridge was built by Anna Berg. It is made of red stone.",
    "The mill burned down in a cold winter. Nobody lives there now.",
)
GOOD = "The bridge was built by Anna Berg."
BAD = "The harbour was sold to seven merchants."
FILLER = ["grass", "trees", "hills", "clouds", "rain", "wind", "snow", "fields", "birds", "stones"]


def call(
    response: str | None, documents: tuple[str, ...] = DOCUMENTS, question: str = QUESTION
) -> SentencizedCall:
    """A call with its sentences keyed."""
    return sentencize(RagCall(question=question, documents=documents, response=response), Punkt())


GERMAN_DOCUMENTS = (
    "Die alte Brücke wurde von Anna Berg gebaut. Sie ist aus rotem Stein.",
    "Die Mühle brannte in einem kalten Winter ab. Dort wohnt niemand mehr.",
)
GERMAN = "Die alte Brücke wurde von Anna Berg gebaut."
"""An answer and, for models that compare words, a question: the embedded judge cannot read it."""
WORDS = tiny.vocabulary(
    [QUESTION, *DOCUMENTS, GOOD, BAD, " ".join(FILLER), "Yes No Is it daily", *GERMAN_DOCUMENTS]
)


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    """A classifier of pairs in three ways."""
    return tiny.pair_model(tmp_path / "tiny-nli", WORDS)


def labelled(judge: Judge, call: SentencizedCall) -> Labelling:
    """Label one call."""
    return asyncio.run(judge.label(call))


def labels_of(judge: Any, call: SentencizedCall) -> Any:
    """Label one call that can be labelled: its labels have all of their optional fields."""
    labels = labelled(judge, call).labels
    assert labels is not None
    return labels


class TestContract(JudgeContract):
    """It keeps the rules that every judge keeps."""

    @pytest.fixture(autouse=True)
    def _folder(self, nli: Path) -> None:
        self.folder = nli

    def judge(self) -> Judge:
        return OnnxJudge(self.folder)


# --- Support


def test_a_sentence_that_the_documents_hold_is_supported_and_another_is_not(nli: Path) -> None:
    """With its probability, and with the document sentence that carries it alone."""
    labels = labels_of(OnnxJudge(nli), call(f"{GOOD} {BAD}"))

    assert [labels.support(key) for key in "ab"] == ["full", "none"]
    assert labels.sentence_support_information[0].supporting_sentence_keys == ("0a",)
    found = labels.supported_probabilities
    assert found["a"] > 0.9
    assert labels.estimates["adherence"][0] == found["b"] < 0.1


@pytest.mark.parametrize("second", [False, True], ids=["words", "cross-encoder"])
@pytest.mark.parametrize("marker", [" [1]", "¹", "【1】", " (Source: seven merchants)"])
def test_citations_change_nothing(nli: Path, tmp_path: Path, marker: str, second: bool) -> None:
    """A marker is no word that a document should hold, and a list of sources is not read."""
    judge = OnnxJudge(nli, relevance=tiny.cross_encoder(tmp_path / "r", WORDS) if second else None)
    answer = f"{GOOD}{marker} {BAD}{marker}\n\nSources:\n[1] harbour.pdf"

    bare, cited = labels_of(judge, call(f"{GOOD} {BAD}")), labels_of(judge, call(answer))

    assert cited.supported_probabilities == bare.supported_probabilities
    assert cited.utilized_probabilities == bare.utilized_probabilities


@pytest.mark.parametrize(
    ("labels", "good"),
    [
        (("CONTRADICTION", "Neutral", "Entailment"), 2),
        (("not_entailment", "entailment"), 1),
        (("Supported", "Not Supported"), 0),
        (("hallucinated", "consistent"), 1),
    ],
)
def test_the_config_names_the_outputs_in_any_order_and_case(
    tmp_path: Path, labels: tuple[str, ...], good: int
) -> None:
    """Three ways and two ways."""
    judge = OnnxJudge(tiny.pair_model(tmp_path / "m", WORDS, labels, good=good))

    found = labels_of(judge, call(f"{GOOD} {BAD}"))

    assert [found.support(key) for key in "ab"] == ["full", "none"]


def test_outputs_without_names_are_refused_unless_they_are_given(tmp_path: Path) -> None:
    """The message has what was found, and the argument to give; nothing is guessed."""
    config = {"problem_type": "single_label_classification"}
    folder = tiny.pair_model(tmp_path / "m", WORDS, ("LABEL_0", "LABEL_1"), good=1, config=config)

    with pytest.raises(ConfigurationError) as error:
        OnnxJudge(folder)

    assert error.value.field == "labels"
    for said in ("LABEL_0", "LABEL_1", "2 outputs", "single_label_classification"):
        assert said in str(error.value)
    judge = OnnxJudge(folder, labels=("unsupported", "supported"))
    assert labels_of(judge, call(GOOD)).support("a") == "full"


def test_a_multi_label_model_is_read_output_by_output(tmp_path: Path) -> None:
    """`problem_type` decides between softmax and sigmoid."""
    names = ("supported", "unsupported")
    half = call("The bridge was sold by Anna Berg.")  # 5 of 7 words: neither 0 nor 1

    def p(name: str, **config: str) -> float:
        judge = OnnxJudge(tiny.pair_model(tmp_path / name, WORDS, names, config=config))
        return float(labels_of(judge, half).supported_probabilities["a"])

    softmax, sigmoid = p("one"), p("many", problem_type="multi_label_classification")

    assert 0.01 < sigmoid < 0.99
    assert softmax == pytest.approx(sigmoid**2 / (sigmoid**2 + (1 - sigmoid) ** 2), abs=1e-5)


def test_batches_of_any_size_give_the_same_labels(nli: Path) -> None:
    """Padding and its mask change nothing, though the padding is a word of the documents."""
    long = " ".join(f"The bridge was built by Anna Berg{' and clouds' * n}." for n in range(9))
    of = call(f"{long} {BAD} Yes.")

    one, sixteen = (labels_of(OnnxJudge(nli, batch_size=size), of) for size in (1, 16))

    assert one == sixteen
    assert len(set(one.supported_probabilities.values())) > 3


def test_evidence_at_the_end_of_two_thousand_sentences_is_found(tmp_path: Path) -> None:
    """The best matches are read, wherever they stand."""
    words = tiny.vocabulary([*WORDS, *(f"w{number}" for number in range(2000))])
    judge = OnnxJudge(tiny.pair_model(tmp_path / "m", words))
    filler = " ".join(f"The {FILLER[n % 10]} near w{n} was cold." for n in range(1999))
    of = call(GOOD, (filler, "The old bridge was built by Anna Berg."))
    assert len(of.documents) == 2000

    labelling: Any = labelled(judge, of)

    [entry] = labelling.labels.sentence_support_information
    assert (entry.fully_supported, entry.supporting_sentence_keys) == (True, ("1a",))
    assert labelling.windows == 4
    assert any("longer than the model reads at once" in said for said in labelling.warnings)


def test_evidence_in_the_middle_of_a_sentence_without_end_is_found(nli: Path) -> None:
    """A text without stops, of more tokens than the model reads, is cut and not cut off."""
    text = " ".join([*FILLER * 100, "the bridge was built by anna berg", *FILLER * 100])

    labels = labels_of(OnnxJudge(nli), call("The bridge was built by Anna Berg", (text,)))

    [entry] = labels.sentence_support_information
    assert (entry.fully_supported, entry.supporting_sentence_keys) == (True, ("0a",))


def test_details_from_several_sentences_are_read_together(nli: Path) -> None:
    """No sentence carries it alone, so its evidence is the best matches of the window."""
    labels = labels_of(OnnxJudge(nli), call("The bridge of red stone was built by Anna Berg."))

    [entry] = labels.sentence_support_information
    assert entry.fully_supported
    assert "together" in entry.explanation
    assert set(entry.supporting_sentence_keys) >= {"0a", "0b"}


def test_a_short_answer_is_read_behind_the_question(nli: Path) -> None:
    """A "Yes." is no claim alone; with its question it is one."""
    documents = ("Yes it is daily.", "Nobody lives there now.")
    asked = {"Is it daily?": "full", "Is the mill sold to merchants?": "none"}

    for question, support in asked.items():
        assert labels_of(OnnxJudge(nli), call("Yes.", documents, question)).support("a") == support


def test_a_follow_up_is_read_behind_the_turns_that_it_refers_to(nli: Path) -> None:
    """Unless they take more than a question's room: then it is read alone."""
    documents = ("Sold to merchants ? Yes.", "Nobody lives there now.")
    alone = "And to merchants?"
    assert labels_of(OnnxJudge(nli), call("Yes.", documents, alone)).support("a") == "full"
    for before, support in (("Is the harbour red?", "none"), ("Is the harbour red? " * 9, "full")):
        history = [Turn(role="user", content=before)]
        asked = RagCall(alone, documents, "Yes.", history=history)
        labels = labels_of(OnnxJudge(nli), sentencize(asked, Punkt()))

        assert labels.support("a") == support


def test_a_template_makes_one_text_of_two(tmp_path: Path) -> None:
    """As models that were trained on a prompt want it; a document cannot fill in its places."""
    words = tiny.vocabulary([*WORDS, "premise hypothesis fact claim"])
    # All in one text: the types are those of the first, so that the model finds no second text.
    folder = tiny.pair_model(tmp_path / "m", words)
    judge = OnnxJudge(folder, template="fact {premise} claim {hypothesis}")
    split = OnnxJudge(folder, template="{question} {premise}")

    assert labels_of(judge, call(GOOD)).support("a") == "none"
    assert labels_of(split, call(GOOD)).support("a") == "full"
    hostile = call(BAD, ("{hypothesis} {premise}",))
    assert labels_of(split, hostile).support("a") == "none"


def test_a_classifier_of_tokens_finds_the_wrong_word(tmp_path: Path) -> None:
    """One unsupported token of a sentence makes it unsupported; its neighbours stay supported."""
    judge = OnnxJudge(tiny.token_model(tmp_path / "m", WORDS))
    of = call(f"{GOOD} The bridge was sold by Anna Berg. It is made of red stone.")

    labels = labels_of(judge, of)

    assert [labels.support(key) for key in "abc"] == ["full", "none", "full"]


@pytest.mark.parametrize("rows", ["batch", 3])
@pytest.mark.parametrize("kind", ["pair", "token", "encoder"])
def test_a_model_exported_for_one_shape_reads_as_one_that_takes_any(
    tmp_path: Path, nli: Path, kind: str, rows: int | str
) -> None:
    """Inputs are filled up; a longest input of 48 tokens cuts the same windows either way."""
    make = {"pair": tiny.pair_model, "token": tiny.token_model, "encoder": tiny.encoder_model}[kind]
    free, fixed = (make(tmp_path / name / "m", WORDS) for name in ("free", "fixed"))
    tiny.fix_shape(fixed, rows, 48)
    long = (" ".join(FILLER * 4) + ".", f"{' '.join(FILLER)}.")
    of, german = call(f"{GOOD} {BAD}", (*DOCUMENTS, *long)), (*GERMAN_DOCUMENTS, *long)

    def read(folder: Path, longest: int | None = None) -> object:
        if kind == "encoder":  # padding takes no part in the mean of the tokens
            judge = OnnxJudge(nli, relevance=folder)
            found = labels_of(judge, call(GERMAN, german, GERMAN)).relevant_probabilities
            return {key: round(p, 5) for key, p in found.items()}
        return labels_of(OnnxJudge(folder, max_length=longest), of).supported_probabilities

    assert read(fixed) == read(free, 48)


# --- Relevance and utilization


def test_without_a_model_for_relevance_the_embedded_judges_is_taken_and_named(nli: Path) -> None:
    """Its estimates and probabilities, not what it says of support; every score says so."""
    of = call("The old bridge was built by Anna Berg in 1890.",
              ("The old bridge was built by Anna Berg in 1850.",))  # fmt: skip
    embedded = labels_of(judge_from("embedded"), of)

    evaluation = RagEvaluator(OnnxJudge(nli)).evaluate_sync(of.call)
    labels = labels_of(OnnxJudge(nli), of)

    assert labels.relevant_probabilities == embedded.relevant_probabilities
    assert labels.utilized_probabilities == embedded.utilized_probabilities
    assert embedded.contradictions
    assert not labels.contradictions
    relevance: Any = evaluation.scores["context_relevance"]
    assert relevance.by.model.endswith("+ embedded")
    assert any("embedded judge" in said for said in relevance.warnings)
    assert relevance.estimate.std_error is not None


@pytest.mark.parametrize("kind", ["cross", "encoder"])
def test_a_model_for_relevance_ranks_the_sentence_that_answers_first(
    tmp_path: Path, nli: Path, kind: str
) -> None:
    """By a cross-encoder or by cosines, as many sentences as their probabilities sum up to."""
    make = tiny.cross_encoder if kind == "cross" else tiny.encoder_model
    judge = OnnxJudge(nli, relevance=make(tmp_path / "relevance", WORDS))
    # An overlap of words is all that they know.
    of = call(GOOD, question="The old bridge was built by Anna Berg.")
    if kind == "encoder":
        of = call(GERMAN, GERMAN_DOCUMENTS, GERMAN)

    labels = labels_of(judge, of)
    evaluation = RagEvaluator(judge).evaluate_sync(of.call)

    for keys, found in (
        (labels.all_relevant_sentence_keys, labels.relevant_probabilities),
        (labels.all_utilized_sentence_keys, labels.utilized_probabilities),
    ):
        best = sorted(found, key=lambda key: -found[key])
        assert best[0] == "0a"
        assert all(0 <= p <= 1 for p in found.values())
        assert set(keys) == set(best[: round(sum(found.values()))])
    assert "0a" in labels.all_relevant_sentence_keys
    score: Any = evaluation.scores["context_relevance"]
    assert score.estimate.method == "expected"
    assert score.estimate.std_error is not None
    assert not any("embedded" in said for said in score.warnings)


def test_cosines_are_not_asked_where_words_can_be_read(tmp_path: Path, nli: Path) -> None:
    """Relevance and use of an English call are the words', as without an encoder; both are named."""
    encoder = tiny.encoder_model(tmp_path / "encoder", WORDS)
    alone, judge = OnnxJudge(nli), OnnxJudge(nli, relevance=encoder)
    english, german = call(f"{GOOD} {BAD}"), call(GERMAN, GERMAN_DOCUMENTS, GERMAN)

    by_words, by_cosines = labelled(judge, english), labelled(judge, german)

    assert by_words.labels == labels_of(alone, english)
    assert by_words.warnings == labelled(alone, english).warnings
    assert "by encoder@" in by_cosines.warnings[0]
    assert by_words.judge == by_cosines.judge  # one judge, whose scores have a mean
    assert str(by_words.judge.model).rpartition("@")[0].endswith(" + embedded or encoder")


@pytest.mark.parametrize("second", [None, "cross", "encoder"])
def test_the_words_estimate_stands_beside_the_models(
    tmp_path: Path, nli: Path, second: str | None
) -> None:
    """For a calibration, through a line of EVALS; none of a call that words cannot be read in."""
    make = {"cross": tiny.cross_encoder, "encoder": tiny.encoder_model}
    judge = OnnxJudge(nli, relevance=second and make[second](tmp_path / "r", WORDS))
    of = call(f"{GOOD} {BAD}")

    evaluation = RagEvaluator(judge).evaluate_sync(of.call)
    read = Evaluation.model_validate_json(evaluation.model_dump_json())

    embedded = labels_of(judge_from("embedded"), of)
    score, labels = cast("Any", (read.scores["adherence"], read.labels))
    assert labels.adherence_by_words() == embedded.adherence_probability()
    assert score.probability == labels.adherence_probability() < 0.1
    told = {name for name, score in read.scores.items() if "not measured" in str(score.warnings)}
    assert told == {"adherence"}
    if second is not None:
        german = labels_of(judge, call(GERMAN, GERMAN_DOCUMENTS, GERMAN))
        assert german.adherence_by_words() is None


def test_the_pooling_is_the_files_or_the_users(tmp_path: Path, nli: Path) -> None:
    """`1_Pooling/config.json` as sentence-transformers writes it; by default the mean."""
    folder = tiny.encoder_model(tmp_path / "r", WORDS)

    def read(pooling: Pooling | None = None) -> object:
        judge = OnnxJudge(nli, relevance=folder, pooling=pooling)
        return labels_of(judge, call(GERMAN, GERMAN_DOCUMENTS, GERMAN)).relevant_probabilities

    mean, first = read(), read("cls")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')

    assert (read(), read("mean")) == (first, mean)
    assert first != mean
    with pytest.raises(ConfigurationError, match="mean or cls"):
        read("max")  # type: ignore[arg-type]


def test_another_language_needs_a_model_for_relevance(tmp_path: Path, nli: Path) -> None:
    """The embedded judge knows English only; the reason says what to give."""
    of = call(
        "Die Brücke wurde im Jahr 1900 von der Stadt gebaut und ist nicht mehr in Betrieb.",
        ("Die Brücke über den Fluss wurde von der Stadt gebaut und ist aus Stein.",),
        "Wer hat die Brücke über den Fluss gebaut und wann war das?",
    )

    without = labelled(OnnxJudge(nli), of)
    given = labelled(OnnxJudge(nli, relevance=tiny.cross_encoder(tmp_path / "r", WORDS)), of)

    assert (without.labels, without.unscored) == (None, "judge_incapable")
    assert "relevance=" in (without.reason or "")
    assert given.labels is not None


def test_a_retrieval_without_a_response_has_relevance_alone(tmp_path: Path, nli: Path) -> None:
    """Nothing was said, so nothing is utilized or supported."""
    judge = OnnxJudge(nli, relevance=tiny.cross_encoder(tmp_path / "r", WORDS))

    labels = labels_of(judge, call(None, question="The old bridge was built by Anna Berg."))

    assert labels.all_relevant_sentence_keys == ("0a",)
    assert labels.sentence_support_information == ()
    assert labels.all_utilized_sentence_keys == ()


@pytest.mark.parametrize("second", [True, False], ids=["second", "words"])
def test_documents_of_earlier_turns_change_no_relevance(
    tmp_path: Path, nli: Path, second: bool
) -> None:
    """The labels of what this turn retrieved are those that it has alone; support counts all."""
    encoder = tiny.cross_encoder(tmp_path / "r", WORDS) if second else None
    judge = OnnxJudge(nli, relevance=encoder)
    again = [DOCUMENTS[0], GOOD, *FILLER]
    numbers = range(1, 1 + len(again))
    later = RagCall(QUESTION, [DOCUMENTS[1], *again], GOOD, earlier=numbers)

    first = labels_of(judge, call(GOOD, DOCUMENTS[1:]))
    fifth = labels_of(judge, sentencize(later, Punkt()))

    assert fifth.relevant_probabilities == first.relevant_probabilities
    assert fifth.all_relevant_sentence_keys == first.all_relevant_sentence_keys
    assert fifth.utilized_probabilities.keys() == {"0a", "0b"}
    assert fifth.supported_probabilities["a"] > first.supported_probabilities["a"]


# --- Failures are data, mistakes raise at construction


def test_a_value_that_is_not_a_number_scores_nothing(tmp_path: Path) -> None:
    """Every score is unscored, and none is NaN or 0."""
    judge = OnnxJudge(tiny.pair_model(tmp_path / "m", WORDS, not_a_number=True))

    evaluation = RagEvaluator(judge).evaluate_sync(call(GOOD).call)

    for score in evaluation.scores.values():
        assert (score.value, score.unscored) == (None, "judge_output_invalid")
        assert "not a finite number" in (score.reason or "")


def test_a_call_with_too_many_pairs_is_over_budget(nli: Path) -> None:
    """The limit is stated, and nothing is left half read."""
    labelling = labelled(OnnxJudge(nli, max_pairs=8), call(" ".join([GOOD] * 3)))

    assert (labelling.labels, labelling.unscored) == (None, "over_budget")
    assert "max_pairs" in (labelling.reason or "")


def _without(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def _config(**fields: Any) -> Any:
    return lambda folder: tiny.write_config(folder, **fields)


def _of_pictures(folder: Path) -> None:
    graph, inputs = tiny.Graph(), ("pixel_values",)
    graph.save(folder / "model.onnx", graph.floats(*inputs), ["batch", 3], inputs=inputs)


_PAIR = {"architectures": ["XForSequenceClassification"]}


@pytest.mark.parametrize(
    ("spoil", "options", "field", "said"),
    [
        (_without("model.onnx"), {}, "model", "has neither model.onnx nor onnx/model.onnx"),
        (_without("tokenizer.json"), {}, "model", "has no tokenizer.json"),
        (lambda f: (f / "config.json").write_text("[]"), {}, "model", "should hold a JSON object"),
        (lambda f: (f / "model.onnx").write_bytes(b"no"), {}, "model", "cannot be loaded"),
        (_of_pictures, {}, "model", "'pixel_values'"),
        (_config(**_PAIR, id2label={"0": "entailment", "1": "neutral"}), {}, "labels",
         "has 3 outputs"),
        (_config(**_PAIR, id2label={"a": "entailment"}), {}, "labels", "LABEL_0"),
        (_config(**_PAIR), {}, "labels", "cannot be told"),
        (None, {"labels": ("supported",)}, "labels", "has 3 outputs"),
        (None, {"labels": ("good", "so", "bad")}, "labels", "cannot be told"),
        (None, {"labels": ("supported", "consistent", "faithful")}, "labels", "cannot be told"),
        (None, {"device": "abacus"}, "device", "this onnxruntime has cpu"),
        (None, {"batch_size": 0}, "batch_size", "from 1"),
        (None, {"threshold": 1.5}, "threshold", "between 0 and 1"),
        (None, {"max_length": 4096}, "max_length", "from 32 to 64"),
        (None, {"template": "no places"}, "template", "{premise}"),
        (None, {"template": "{premise} " + "grass " * 60}, "template", "more than half"),
        (None, {"pooling": "cls"}, "pooling", "`relevance=`"),
        (None, {"relevance": "nowhere"}, "relevance", "no such folder or file"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_when_the_judge_is_made(
    nli: Path, spoil: Any, options: dict[str, Any], field: str, said: str
) -> None:
    """Argument and value, before any call is judged."""
    if spoil is not None:
        spoil(nli)

    with pytest.raises(ConfigurationError) as error:
        OnnxJudge(nli, **options)

    assert error.value.field == field
    assert said in str(error.value)


def test_a_length_that_an_exported_shape_does_not_have_is_refused(tmp_path: Path) -> None:
    """Both a longest input beyond the shape, and a shape in which nothing fits."""
    folder = tiny.fix_shape(tiny.pair_model(tmp_path / "m", WORDS), "batch", 48)
    with pytest.raises(ConfigurationError, match=r"`max_length` = 49.*from 32 to 48"):
        OnnxJudge(folder, max_length=49)

    short = tiny.fix_shape(tiny.pair_model(tmp_path / "short", WORDS), "batch", 16)
    with pytest.raises(ConfigurationError, match=r"takes inputs of 16 tokens; 32 are the least"):
        OnnxJudge(short)


def test_a_model_of_another_kind_is_refused(tmp_path: Path, nli: Path) -> None:
    """An encoder cannot judge support, a classifier of tokens not relevance."""
    encoder = tiny.encoder_model(tmp_path / "encoder", WORDS)
    tokens = tiny.token_model(tmp_path / "tokens", WORDS)

    with pytest.raises(ConfigurationError, match=r"`model` = 'encoder@.*an encoder"):
        OnnxJudge(encoder)
    with pytest.raises(ConfigurationError, match=r"`relevance` = 'tokens@.*classifier of tokens"):
        OnnxJudge(nli, relevance=tokens)


def test_a_missing_package_names_the_extra(nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    command = r"pip install 'rag-eval-integrations\[onnx\]'"
    with pytest.raises(MissingDependencyError, match=command):
        OnnxJudge(nli)


# --- Identity


def test_the_version_changes_with_the_files_and_the_options(tmp_path: Path, nli: Path) -> None:
    """Evaluations of one model are never taken for another's; batches change nothing."""
    first = OnnxJudge(nli)
    other = tiny.pair_model(tmp_path / "other" / "tiny-nli", WORDS, sign=0.9)
    copy = tiny.pair_model(tmp_path / "copy" / "tiny-nli", WORDS)
    token = tiny.pair_model(tmp_path / "token" / "tiny-nli", {**WORDS, "extra": len(WORDS)})

    assert OnnxJudge(copy).version == first.version
    assert OnnxJudge(nli, batch_size=1, threads=1).version == first.version
    same: Any = {"labels": ("supported", "unsupported", "unsupported")}
    options: list[Any] = [{"threshold": 0.6}, {"max_windows": 2}, {"max_length": 48}, same]
    options.append({"relevance": tiny.cross_encoder(tmp_path / "r", WORDS)})
    changed = [OnnxJudge(other), OnnxJudge(token), *(OnnxJudge(nli, **each) for each in options)]
    versions = {judge.version for judge in [first, *changed]}
    assert len(versions) == len(changed)  # names of the same meaning are the same
    assert RagEvaluator(first).fingerprint != RagEvaluator(OnnxJudge(other)).fingerprint


@pytest.mark.parametrize("place", ["onnx/model.onnx", "model_quantized.onnx"])
def test_the_file_may_stand_in_a_folder_of_its_own_or_have_another_name(
    tmp_path: Path, place: str
) -> None:
    """As exports leave it."""
    folder = tiny.pair_model(tmp_path / "m", WORDS, file=place)
    given = folder if place.startswith("onnx/") else folder / place

    judge = OnnxJudge(given)

    assert judge_from(f"onnx:{given}").name == "onnx"
    assert labels_of(judge, call(GOOD)).support("a") == "full"
    assert ("model_quantized" in repr(judge)) == (folder != given)


# --- Concurrency


async def test_a_cancelled_call_stops_and_the_next_is_read(nli: Path) -> None:
    """It stops before its next batch, and does not keep the calls behind it waiting."""
    judge = OnnxJudge(nli, batch_size=1)
    started, cancelled, batches = threading.Event(), threading.Event(), 0
    run = judge._support.run

    def counted(inputs: Mapping[str, Any]) -> Any:
        nonlocal batches
        batches += 1
        started.set()
        assert cancelled.wait(60)
        return run(inputs)

    judge._support.run = counted  # type: ignore[method-assign]
    long = asyncio.create_task(judge.label(call(" ".join([GOOD, BAD] * 10))))
    await asyncio.to_thread(started.wait, 60)

    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    cancelled.set()
    labelling = await judge.label(call(GOOD))

    assert labelling.labels is not None
    assert batches == 1 + 4  # one window, and its three best matches alone
    await judge.aclose()


async def test_a_closed_judge_says_so(nli: Path) -> None:
    """Closing twice does no harm."""
    judge = OnnxJudge(nli)
    await judge.label(call(GOOD))
    await judge.aclose()
    await judge.aclose()

    with pytest.raises(JudgeError, match="closed"):
        await judge.label(call(GOOD))
    with pytest.raises(TypeError, match="the judge is closed"):
        pickle.dumps(judge)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_reads_with_threads_of_its_own(nli: Path) -> None:
    """The parent's threads are not in the child: thread and session are made anew."""
    judge = OnnxJudge(nli, threads=2)
    before = labels_of(judge, call(GOOD))
    session = judge._support._loaded

    def read() -> str:
        same = labels_of(judge, call(GOOD)) == before
        return f"{same} {judge._support._loaded is session}"

    assert forked(read).printed() == "True False"
    assert judge._support._loaded is session
    assert labels_of(judge, call(GOOD)) == before


def test_another_process_makes_it_anew(nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same options, from another folder, too; none of its arguments is forgotten."""
    monkeypatch.chdir(nli.parent)
    judge = OnnxJudge(nli.name, threshold=0.6, max_windows=2, batch_size=3, threads=1)
    packed = pickle.dumps(judge)
    monkeypatch.chdir("/")

    again = pickle.loads(packed)

    assert (repr(again), again.card) == (repr(judge), judge.card)
    assert labels_of(again, call(f"{GOOD} {BAD}")) == labels_of(judge, call(f"{GOOD} {BAD}"))
    made_of = again.__reduce__()[0].keywords
    assert made_of.keys() == inspect.signature(OnnxJudge).parameters.keys()
    assert (made_of["batch_size"], made_of["threads"]) == (3, 1)


def test_a_response_sentence_that_is_cut_is_told(nli: Path) -> None:
    """A warning says that the end of a long response sentence was not read."""
    for text, told in ((GOOD, False), (" ".join([*FILLER * 100, BAD]), True)):
        warnings = labelled(OnnxJudge(nli), call(text)).warnings
        assert ("its end was not read" in " ".join(warnings)) == told
