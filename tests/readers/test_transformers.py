"""`TransformersJudge` on tiny models of transformers' own classes, with random weights.

They know nothing: what is tested is that their outputs arrive as they are, by every way of loading
them, in batches, windows and on padding; and that the same weights exported to ONNX give the same.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from processes import python

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.judges import Judge, OnnxJudge, TransformersJudge, judge_from
from rag_eval_integrations.records import SentencizedCall
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.testing import JudgeContract, small_call

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tiny = pytest.importorskip("tiny_readers")

pytestmark = [
    pytest.mark.readers,
    pytest.mark.filterwarnings("default"),  # those of other people's exporters and loaders
]

QUESTION = "Who built the bridge over the river?"
DOCUMENTS = (
    "The old bridge was built by Anna Berg. It is made of red stone.",
    "The mill burned down in a cold winter. Nobody lives there now.",
)
RESPONSE = "The bridge was built by Anna Berg. It stands in a cold winter. Yes."
CALL = small_call()
WORDS = tiny.vocabulary(
    [QUESTION, *DOCUMENTS, RESPONSE, CALL.call.question, CALL.call.response or ""]
    + [document.text for document in CALL.call.documents]
)
SIZE = {
    "vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64, "pad_token_id": 0,
    "initializer_range": 0.8,
}  # fmt: skip
NLI = {0: "contradiction", 1: "Entailment", 2: "neutral"}


def call(response: str = RESPONSE, documents: tuple[str, ...] = DOCUMENTS) -> SentencizedCall:
    """A call with its sentences keyed."""
    return sentencize(RagCall(question=QUESTION, documents=documents, response=response), Punkt())


GERMAN = sentencize(
    RagCall(
        question="Wer hat die alte Brücke gebaut, und von wem wurde sie bezahlt?",
        documents=(
            "Die alte Brücke wurde von Anna Berg gebaut. Sie ist aus rotem Stein.",
            "Die Mühle brannte in einem kalten Winter ab. Dort wohnt niemand mehr.",
        ),
        response="Die alte Brücke wurde von Anna Berg gebaut.",
    ),
    Punkt(),
)
"""A call that the embedded judge cannot read: a model for relevance of whatever kind is asked."""


def tokenizer(folder: Path) -> Any:
    """Make a fast tokenizer of words."""
    folder.mkdir(parents=True, exist_ok=True)
    tiny.write_tokenizer(folder, WORDS)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]", unk_token="[UNK]",
        cls_token="[CLS]", sep_token="[SEP]", model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


def made(kind: str, folder: Path, **config: Any) -> Path:
    """Make a model with random weights, the same each time, and save it as transformers does."""
    torch.manual_seed(0)
    family, _, head = kind.partition(":")
    settings = getattr(transformers, f"{family}Config")(**{**SIZE, **config})
    model = getattr(transformers, f"{family}{head}")(settings)
    model.save_pretrained(folder)
    tokenizer(folder).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that tells entailment."""
    return made("Bert:ForSequenceClassification", tmp_path / "m", id2label=NLI)


def loaded(folder: Path | str) -> tuple[Any, Any]:
    """A model and its tokenizer, as transformers loads them."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def exported(source: Path, folder: Path, output: str) -> Path:
    """Export a saved model to ONNX."""
    model = transformers.AutoModelForSequenceClassification
    if "TokenClass" in (source / "config.json").read_text():
        model = transformers.AutoModelForTokenClassification
    if output == "last_hidden_state":
        model = transformers.AutoModel
    loaded = model.from_pretrained(source, attn_implementation="eager").eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]

    class Plain(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            out = self.inner(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            )
            return out[output]

    plain = Plain()
    plain.inner = loaded
    example = tuple(torch.ones(2, 7, dtype=torch.int64) for _ in names)
    axes = {0: "batch", 1: "tokens"}
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            plain, example, str(folder / "model.onnx"), input_names=names, output_names=[output],
            dynamic_axes={**dict.fromkeys(names, axes), output: axes}, dynamo=False,
        )  # fmt: skip
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    return folder


def labels_of(judge: Judge, of: SentencizedCall) -> Any:
    """Label one call that can be labelled."""
    labels = asyncio.run(judge.label(of)).labels
    assert labels is not None
    return labels


class TestContract(JudgeContract):
    """It keeps the rules that every judge keeps."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = made("Bert:ForSequenceClassification", tmp_path / "m", id2label=NLI)

    def judge(self) -> Judge:
        return TransformersJudge(self.folder)


MODELS = [
    ("Bert:ForSequenceClassification", {"id2label": NLI}, {}),
    ("Bert:ForSequenceClassification", {"id2label": {0: "consistent"}}, {}),
    ("Roberta:ForSequenceClassification",
     {"id2label": {0: "hallucinated", 1: "supported"}, "max_position_embeddings": 66,
      "pad_token_id": 1, "type_vocab_size": 2}, {}),
    ("DebertaV2:ForSequenceClassification", {"num_labels": 2, "type_vocab_size": 2, "initializer_range": 0.2},
     {"labels": ("unsupported", "supported")}),
    ("Bert:ForTokenClassification", {"num_labels": 2}, {"labels": ("supported", "hallucinated")}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "config", "options"), MODELS)
def test_probabilities_are_those_of_the_model_alone(
    tmp_path: Path, kind: str, config: dict[str, Any], options: dict[str, Any]
) -> None:
    """One document sentence, asked by hand as transformers' documentation does it."""
    folder = made(kind, tmp_path / "m", **config)
    document, said = "The old bridge was built by Anna Berg.", "The bridge was built by Anna Berg."
    labels = labels_of(TransformersJudge(folder, **options), call(said, (document,)))

    token = "Token" in kind
    auto = transformers.AutoModelForTokenClassification
    if not token:
        auto = transformers.AutoModelForSequenceClassification
    model = auto.from_pretrained(folder).eval()
    first = f"{QUESTION}\n{document}" if token else document
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(first, said, return_tensors="pt")
    with torch.no_grad():
        logits = model(**encoded).logits[0]
    if token:
        inside = [part == 1 for part in encoded.sequence_ids(0)]
        wanted = min(row[0].item() for row in logits.softmax(-1)[inside][:-1])
    elif len(logits) == 1:
        wanted = logits.sigmoid()[0].item()
    else:
        wanted = logits.softmax(-1)[1].item()

    assert labels.supported_probabilities["a"] == pytest.approx(wanted, abs=2e-6)
    assert 1e-4 < wanted < 1 - 1e-4, "the model is so sure that nothing is shown"


@pytest.mark.parametrize(("kind", "config", "options"), MODELS)
def test_the_same_weights_in_onnx_give_the_same_labels(
    tmp_path: Path, kind: str, config: dict[str, Any], options: dict[str, Any]
) -> None:
    """In windows, with padding, for batches of 1 and of 16."""
    folder = made(kind, tmp_path / "m", **config)
    onnx = exported(folder, tmp_path / "onnx-m", "logits")
    of = call(documents=(*DOCUMENTS, " ".join(DOCUMENTS) * 3))

    torch_labels = labels_of(TransformersJudge(folder, **options), of)
    for size in (1, 16):
        onnx_labels = labels_of(OnnxJudge(onnx, batch_size=size, **options), of)
        same = pytest.approx(torch_labels.supported_probabilities, abs=1e-5)
        assert onnx_labels.supported_probabilities == same
        for key in "abc":
            by_onnx, by_torch = (found.entry(key) for found in (onnx_labels, torch_labels))
            assert by_onnx.supporting_sentence_keys == by_torch.supporting_sentence_keys


@pytest.mark.parametrize("kind", ["Bert:ForSequenceClassification", "Bert:Model"])
def test_relevance_by_a_cross_encoder_and_by_an_encoder(
    tmp_path: Path, folder: Path, kind: str
) -> None:
    """The same from torch and from ONNX, and named as theirs."""
    second = made(kind, tmp_path / "second", num_labels=1)
    output = "logits" if kind.endswith("Classification") else "last_hidden_state"
    onnx = exported(folder, tmp_path / "onnx-m", "logits")
    onnx_second = exported(second, tmp_path / "onnx-second", output)

    by_torch = labels_of(TransformersJudge(folder, relevance=second), GERMAN)
    by_onnx = labels_of(OnnxJudge(onnx, relevance=onnx_second), GERMAN)

    for name in ("relevant_probabilities", "utilized_probabilities"):
        assert getattr(by_torch, name) == pytest.approx(getattr(by_onnx, name), abs=5e-6)
    assert "second@" in by_torch.relevance_explanation


def test_models_that_are_loaded_already_are_taken(tmp_path: Path, folder: Path) -> None:
    """With the same labels and the same digest as from their folder."""
    objects = loaded(folder)
    given = TransformersJudge(objects)

    found = [labels_of(one, call()) for one in (given, TransformersJudge(folder))]
    assert found[0].supported_probabilities == found[1].supported_probabilities
    assert TransformersJudge(objects).version == given.version  # though they were used
    other = made("Bert:ForSequenceClassification", tmp_path / "other" / "m", id2label=NLI,
                 initializer_range=0.7)  # fmt: skip
    versions = {TransformersJudge(one).version for one in (folder, other)}
    assert len(versions) == 2


def test_another_process_makes_it_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a folder, whatever the working directory, and from objects."""
    monkeypatch.chdir(folder.parent)
    options: dict[str, Any] = {"threshold": 0.6, "batch_size": 3}
    judges = [TransformersJudge("m", **options), TransformersJudge(loaded("m"))]
    packed = pickle.dumps(judges)
    monkeypatch.chdir("/")

    for judge, again in zip(judges, pickle.loads(packed), strict=True):
        assert again.version == judge.version
        assert labels_of(again, call()) == labels_of(judge, call())
        made_of = again.__reduce__()[0].keywords
        assert made_of.keys() == inspect.signature(TransformersJudge).parameters.keys()


def test_scores_name_the_model_without_its_folder(tmp_path: Path) -> None:
    """And every score of the row is scored, by the command's name as well."""
    folder = made("Bert:ForSequenceClassification", tmp_path / "tiny-bert", id2label=NLI)
    evaluation = RagEvaluator(judge_from(f"transformers:{folder}")).evaluate_sync(call().call)

    assert str(tmp_path) not in evaluation.model_dump_json()
    assert evaluation.judge.name == "transformers"
    assert (evaluation.judge.model or "").startswith("tiny-bert@")
    assert all(score.status == "scored" for score in evaluation.scores.values())


def test_weights_that_are_not_numbers_score_nothing(folder: Path) -> None:
    """Unscored with the reason, not NaN."""
    objects = loaded(folder)
    with torch.no_grad():
        objects[0].classifier.bias[0] = math.nan
    judge = TransformersJudge(objects)

    evaluation = RagEvaluator(judge).evaluate_sync(call().call)

    assert {score.unscored for score in evaluation.scores.values()} == {"judge_output_invalid"}


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        ({"device": "abacus"}, "device", "cannot be used by torch"),
        ({"labels": ("supported",)}, "labels", "has 3 outputs"),
        ({"relevance": "no/such-model"}, "relevance", "cannot be loaded"),
        ({"relevance": (1, 2)}, "relevance", "use a tuple (model, tokenizer)"),
        ({"max_length": 65}, "max_length", "from 32 to 64"),
        ({"batch_size": 0}, "batch_size", "from 1"),
    ],
)
def test_a_mistake_is_told_when_the_judge_is_made(
    folder: Path, options: dict[str, Any], field: str, said: str
) -> None:
    """Argument and value; nothing is asked of the hub where it is offline."""
    with pytest.raises(ConfigurationError) as error:
        TransformersJudge(folder, **options)

    assert error.value.field == field
    assert said in str(error.value)


def test_a_missing_package_names_the_extra() -> None:
    """With the command that installs it."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from rag_eval_integrations.judges import TransformersJudge\n"
        "TransformersJudge('m')"
    )
    done = python(code)

    assert MissingDependencyError.__name__ in done.stderr
    assert "pip install 'rag-eval-integrations[transformers]'" in done.stderr


@pytest.mark.skipif("RAG_EVAL_MINILM" not in os.environ, reason="needs a folder with the model")
def test_an_encoder_with_real_weights_ranks_the_answer_first(folder: Path) -> None:
    """RAG_EVAL_MINILM names a folder with all-MiniLM-L6-v2, such as that of a package."""
    judge = TransformersJudge(folder, relevance=os.environ["RAG_EVAL_MINILM"])

    labels = labels_of(judge, GERMAN)

    for found in (labels.relevant_probabilities, labels.utilized_probabilities):
        assert max(found, key=lambda key: found[key]) == "0a"
