"""`ReaderJudge`: a local model's probabilities become labels, in a thread of its own.

Each response sentence is read beside the document sentences that match it best. Its probability is
the highest over its premises: windows of these sentences, and the best few of them alone. Sentences
that carry it alone are its evidence. Document sentences are ranked by the model's own tokens that
they share with a response sentence, the rarer the more weight, which holds in every language that
the model has tokens for.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from math import fsum, log, sqrt
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, NamedTuple

from rag_eval_integrations._contain import contained
from rag_eval_integrations._loop import Threads
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeOutputError,
    whole_number,
)
from rag_eval_integrations.judges._local_model import LocalModel, Pair, Pooling, sigmoid
from rag_eval_integrations.judges.embedded import EmbeddedJudge
from rag_eval_integrations.judges.embedded.judge import label_call, standalone_question
from rag_eval_integrations.judges.judge import JudgeBase
from rag_eval_integrations.records import (
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    SentenceSupport,
    SentencizedCall,
)
from rag_eval_integrations.records.labels import BY_WORDS, UnscoredCode
from rag_eval_integrations.sentences._markers import without_markers

DIGITS = 6
"""Decimals of every probability. Batches of other sizes differ in the last bits of a float32."""

_RULES = "5"
"""Increment when the labelling changes although models and settings do not."""

READER = "local_reader"
"""Flag of every labelling, for `Evaluation.flags`."""

ALONE = 3
"""Document sentences of the best premise that are also read alone, per response sentence."""
SHORT = 5
"""Tokens up to which a sentence is read behind the question: "Yes." claims nothing alone."""
_POSSIBLE = 0.15
"""Lowest probability of a sentence that is labelled relevant or utilized."""

Line = tuple[float, float]
"""Intercept and slope of the log-odds over a cosine."""

RELEVANT: Line = (-2.51, 3.53)
UTILIZED: Line = (-6.67, 8.53)
"""Fitted with all-MiniLM-L6-v2 on 320 labelled rows of RAGBench (docs/local-models.md). A cosine is
not a probability; those of another encoder lie elsewhere: fit these two again, or calibrate."""

_PLACES = re.compile(r"\{(premise|hypothesis|question)\}")
_CLOSED = "the judge is closed"
_LEFT_OUT = (
    "The documents are longer than the model reads at once: the parts that match a response "
    "sentence least were not read beside it."
)
_CUT = "A response sentence is longer than a quarter of what the model reads: its end was not read."


# --- Premises: pieces of documents, and windows of them


class SentencePart(NamedTuple):
    """A document sentence, or a part of one that is longer than the model reads."""

    sentence: int
    """Index of the document sentence."""
    text: str
    ids: frozenset[int]
    size: int
    """Number of its tokens."""


def pieces_of(model: LocalModel, texts: Sequence[str], most: int) -> list[SentencePart]:
    """Cut document sentences into pieces of at most `most` tokens, in order.

    A text without tokens is left out: there is nothing to read.
    """
    pieces = []
    for number, (text, encoding) in enumerate(zip(texts, model.tokens(texts), strict=True)):
        tokens, spans = encoding.ids, encoding.offsets
        for low in range(0, len(tokens), most):
            ids = tokens[low : low + most]
            inside = text[spans[low][0] : spans[low + len(ids) - 1][1]]
            whole = text if len(tokens) <= most else inside
            pieces.append(SentencePart(number, whole, frozenset(ids), len(ids)))
    return pieces


def ranked(pieces: Sequence[SentencePart], texts: Iterable[frozenset[int]]) -> list[list[int]]:
    """Rank all pieces for each text by the tokens that they share; the best match comes first."""
    counts = Counter(token for piece in pieces for token in piece.ids)
    # A token that every piece has still counts a little: one piece alone is ranked as well.
    weight = {token: log((1 + len(pieces)) / (0.5 + count)) for token, count in counts.items()}

    def mass(ids: Iterable[int]) -> float:
        """Sum the weights of tokens."""
        return fsum(weight.get(token, 0.0) for token in ids)

    # A long piece shares more by chance; half of its weight would rank short titles first.
    own = [0.2 * mass(piece.ids) for piece in pieces]
    orders = []
    for ids in texts:
        whole = mass(ids)
        shared = [ids & piece.ids for piece in pieces]
        score = [mass(s) / (whole + o) if s else 0.0 for s, o in zip(shared, own, strict=True)]
        orders.append(sorted(range(len(score)), key=score.__getitem__, reverse=True))
    return orders


def windows(order: Sequence[int], sizes: Sequence[int], budget: int, most: int) -> list[list[int]]:
    """Pack pieces into windows, the best matches first.

    Args:
        order: numbers of the pieces, the best match first.
        sizes: tokens of each piece, none above the budget.
        budget: most tokens of a window.
        most: most windows.
    """
    packed: list[list[int]] = []
    left = budget
    for number in order:
        # One more per piece, for the space between two pieces.
        if not packed or sizes[number] + 1 > left:
            if len(packed) == most:
                break
            packed.append([])
            left = budget
        packed[-1].append(number)
        left -= sizes[number] + 1
    return packed


# --- The judge


class Read(NamedTuple):
    """The support read for a response sentence; document sentences by index, the best first."""

    probability: float = 0.0
    """P(supported)."""
    alone: Sequence[tuple[int, float]] = ()
    """Document sentences, each with the probability that it carries the sentence alone."""
    matched: Sequence[int] = ()
    """Document sentences of the best premise that share a token with it."""


class ReaderJudge(JudgeBase):
    """Base of the judges that read with a local model; see `OnnxJudge`, `TransformersJudge`.

    A judge is pickled as the arguments of its class: another process loads the models.
    """

    keeps_keys = True
    _library: ClassVar[str]
    _model: ClassVar[Callable[..., LocalModel]]
    """Loads a model, of (model, purpose, `Options`)."""

    def __init__(
        self,
        model: Any,
        *,
        relevance: Any = None,
        labels: Sequence[str] | None = None,
        template: str | None = None,
        threshold: float = 0.5,
        max_length: int | None = None,
        max_windows: int = 4,
        max_pairs: int = 8_192,
        batch_size: int = 16,
        pooling: Pooling | None = None,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        _check(given)
        self._made_of = given | {name: _absolute(given[name]) for name in ("model", "relevance")}
        self.name = self._library
        self._threshold = threshold
        self._max_windows, self._max_pairs = max_windows, max_pairs
        load = type(self)._model
        self._support = load(model, "model", given | {"pooling": None})
        self._second: LocalModel | None = None
        if relevance is not None:
            own = {"labels": None, "max_length": None}
            self._second = load(relevance, "relevance", given | own)
        self._models = [model for model in (self._support, self._second) if model]
        self._thread = Threads(1, "rag-eval-reader")
        self._closed = False
        # Each of question and hypothesis may take a quarter; a premise has the rest.
        self._quarter = self._support.length // 4
        by_tokens = self._support.kind == "token"
        self._template = template or ("{question}\n{premise}" if by_tokens else "{premise}")
        self._check_template()
        # What labels depend on.
        lines = (RELEVANT, UTILIZED) if self._second else None
        options = (threshold, max_windows, max_pairs, template, lines, EmbeddedJudge().version)
        parts = repr([*(model.identity for model in self._models), options])
        digest = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()
        self.version = f"{_RULES}-{digest[:12]}"
        by = self._second.name if self._second else "embedded"
        if self._second and self._second.kind == "embedding":
            by = f"embedded or {by}"
        read_by = f"{self._support.name} + {by}"
        self._info = JudgeInfo(name=self.name, model=read_by, version=self.version)
        self.card = (
            f"Support is read by {self._support.name} ({self._support.kind} classifier, "
            f"{self._support.length} tokens), relevance by {by}. Its probabilities are "
            "not calibrated: fit them, and the words', to labelled rows of your own."
        )

    def _check_template(self) -> None:
        """Refuse a template that does not fit the model."""
        template, room = self._template, self._support.length
        if self._support.kind == "token" and "{hypothesis}" in template:
            raise ConfigurationError(
                "template",
                template,
                "a classifier of tokens reads the response as a text of its "
                "own: leave {hypothesis} out",
            )
        if self._support.longest([self._pair("", "", "")]) > room // 2:
            raise ConfigurationError("template", template, f"fills more than half of {room} tokens")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._info.model!r}, version={self.version!r})"

    def __reduce__(self) -> tuple[object, ...]:
        if self._closed:
            raise TypeError(_CLOSED)
        return partial(type(self), **self._made_of), ()

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call in the judge's own thread, one call at a time.

        A call that is cancelled stops between two batches.

        Raises:
            JudgeError: the judge is closed, or the model's library failed.
        """
        if self._closed:
            raise JudgeError(_CLOSED)
        stop = Event()
        try:
            return await self._thread.run(partial(self._label, call, stop))
        finally:
            stop.set()  # of no consequence unless the wait for it was cancelled

    async def aclose(self) -> None:
        """End the thread after its current call, and release the models."""
        self._closed, self._made_of = True, {}  # they may be models
        await self._thread.aclose()
        for model in self._models:
            model.close()

    def _label(self, call: SentencizedCall, stop: Event) -> Labelling:
        """Label one call; the labelling of a call that cannot be labelled says why.

        Raises what is the model's or the library's failure.
        """
        if self._closed:  # while it was waiting for its turn
            raise JudgeError(_CLOSED)
        try:
            with contained:
                return self._labelled(call, stop)
        except JudgeOutputError as error:
            return self._unscored("judge_output_invalid", str(error))
        except JudgeError:
            raise
        except Exception as error:
            why = f"{self._info.model}: {type(error).__name__}: {error}"
            raise JudgeError(why) from error

    def _unscored(self, code: UnscoredCode | None, why: str) -> Labelling:
        """Make the labelling of a call that cannot be labelled."""
        return Labelling(labels=None, judge=self._info, flags=(READER,), unscored=code, reason=why)

    def _labelled(self, call: SentencizedCall, stop: Event) -> Labelling:
        """Read support, and take relevance from the second model or the embedded judge.

        From an encoder only where the embedded judge cannot read the call, since its cosines are
        far worse. Unscored with too many pairs, or where nobody can tell relevance.
        """
        by_words, second = label_call(call), self._second
        words = by_words.labels
        if second and second.kind == "embedding" and words is not None:
            second = None
        keys = [sentence.key for sentence in call.documents]
        answered = [sentence.key for sentence in call.response]
        size, most = (len(answered), len(keys)), self._max_pairs
        many = f"{size[0]} response sentences" if size[0] * (1 + ALONE) > most else ""
        if second and max(1, size[0]) * size[1] > most:
            many = f"{size[0]} response and {size[1]} document sentences"
        if many:
            why = f"the call has {many}, more than {most} pairs allow (max_pairs)"
            return self._unscored("over_budget", why)
        known: dict[str, Any]
        if second:
            maker = second.name
            question = self._question(call.call)
            relevant, used = relevance(second, call, question, stop)
            reads, most, unread = self._read(call, stop)
            for number, p in chain.from_iterable(read.alone for read in reads):
                used[number] = max(used[number], p)  # what carries another sentence alone was used
            own = [sentence.key for sentence in call.of_this_turn().documents]
            relevant, used = _values_of(own, keys, relevant), _values_of(own, keys, used)
            known = {
                "all_relevant_sentence_keys": _likeliest(own, relevant),
                "all_utilized_sentence_keys": _likeliest(own, used),
                "relevant_probabilities": _rounded(own, relevant),
                "utilized_probabilities": _rounded(own, used),
                "estimates": {},
            }
        elif words is None:
            why = f"{by_words.reason}; or give a model for relevance (`relevance=`)"
            return self._unscored(by_words.unscored, why)
        else:
            maker = f"the embedded judge (version {by_words.judge.version})"
            # What it says of the response is overwritten below.
            known = words.model_dump(exclude={"contradictions"})
            reads, most, unread = self._read(call, stop)
        supported = _rounded(answered, [read.probability for read in reads])
        if supported:
            # Sentences of a response are far from independent: their product would fall with its
            # length. The standard error is the RMS distance of the gold score, 0 or 1.
            least = min(supported.values())
            known["estimates"]["adherence"] = (least, round(sqrt(least * (1 - least)), DIGITS))
            if words is not None and words.estimates:
                known["estimates"][BY_WORDS] = words.estimates["adherence"]
        entries = [self._entry(*pair, keys) for pair in zip(answered, reads, strict=True)]
        wrong = [entry.response_sentence_key for entry in entries if not entry.fully_supported]
        unsupported = f"unsupported are {', '.join(wrong)}." if wrong else "all supported."
        count = len(known["all_relevant_sentence_keys"])
        total = len(known["relevant_probabilities"])
        known |= {
            "relevance_explanation": f"By {maker}: {count} of {total} document sentences are "
            "relevant.",
            "overall_supported_explanation": f"By {self._support.name}: {unsupported}",
            "overall_supported": not wrong,
            "sentence_support_information": tuple(entries),
            "unsupported_response_sentence_keys": tuple(wrong),
            "supported_probabilities": supported,
        }
        warning = (
            f"Support is judged by the local model {self._support.name}, relevance and utilization "
            f"by {maker}. The probabilities of local models are not calibrated."
        )
        return Labelling(
            labels=Labels(**known),
            judge=self._info,
            windows=most,
            # Without the number: a summary would list each by itself.
            warnings=(warning, *unread),
            flags=(READER,),
        )

    def _entry(self, key: str, read: Read, keys: Sequence[str]) -> SentenceSupport:
        """Make the support entry of a response sentence from what was read of it.

        Supported from the threshold on, by sentences that carry it alone, else by the best premise.
        """
        supported = round(read.probability, DIGITS) >= self._threshold
        evidence = [number for number, p in read.alone if supported and p >= self._threshold]
        near = tuple(dict.fromkeys(keys[number] for number in evidence or read.matched))
        why = "closest are"
        if supported:
            why = "alone by" if evidence else "together by what is around"
        basis = f" {why} {', '.join(near)}" if near else " there is no document sentence"
        return SentenceSupport(
            response_sentence_key=key,
            explanation=f"P(supported) {read.probability:.2f} by {self._support.name};{basis}.",
            supporting_sentence_keys=near if supported else (),
            fully_supported=supported,
        )

    def _read(self, call: SentencizedCall, stop: Event) -> tuple[list[Read], int, list[str]]:
        """Compute how well the document sentences support each response sentence.

        First beside windows of those that match best, then beside the best few of the best window
        alone. A short sentence is read behind the question.

        Returns:
            What was read of each, the most windows of one, and warnings of what was not read.

        Raises:
            JudgeOutputError, JudgeError: as `LocalModel.probabilities`.
        """
        model, count = self._support, len(call.response)
        spoken = (self._question(call.call), *(without_markers(s.text) for s in call.response))
        whole = [model.without_special_tokens(text) for text in spoken]
        question, *texts = map(self._beginning, whole)
        unread = [_CUT] if texts != whole[1:] else []
        behind, *tokens = [frozenset(text.ids) for text in model.tokens([question, *texts])]
        if model.kind == "pair":
            for number, ids in enumerate(tokens):
                if len(ids) <= SHORT:
                    texts[number], tokens[number] = f"{question} {texts[number]}", ids | behind
        fixed = model.longest([self._pair("", question, text) for text in texts or [""]])
        budget = max(1, model.length - fixed - 2)
        pieces = pieces_of(
            model, [model.without_special_tokens(each.text) for each in call.documents], budget
        )
        if not pieces:
            return [Read()] * count, 1, unread
        sizes = [piece.size for piece in pieces]
        allowed = max(1, min(self._max_windows, self._max_pairs // max(1, count) - ALONE))
        packed = [windows(order, sizes, budget, allowed) for order in ranked(pieces, tokens)]

        def premise_of(numbers: Sequence[int]) -> str:
            """Join pieces in the order of the documents."""
            return " ".join(pieces[number].text for number in sorted(numbers))

        def scores(premises: Sequence[Sequence[Sequence[int]]]) -> list[list[float]]:
            """Compute P(supported) of each text for each of its premises."""
            pairs = [
                self._pair(premise_of(numbers), question, text)
                for text, own in zip(texts, premises, strict=True)
                for numbers in own
            ]
            values = iter(model.probabilities(pairs, stop))
            return [list(islice(values, len(own))) for own in premises]

        together = scores(packed)
        best = [own[p.index(max(p))][:ALONE] for own, p in zip(packed, together, strict=True)]
        single = scores(list(map(_singletons, best)))
        reads = []
        for ids, numbers, values, singly in zip(tokens, best, together, single, strict=True):
            near = [pieces[number] for number in numbers]
            carried = zip(near, singly or [max(values)], strict=True)
            alone = [(piece.sentence, p) for piece, p in carried]
            matched = [piece.sentence for piece in near if piece.ids & ids]
            reads.append(Read(max([*values, *singly]), alone, matched))
        if any(sum(map(len, own)) < len(pieces) for own in packed):
            unread.append(_LEFT_OUT)
        return reads, max(map(len, packed), default=1), unread

    def _question(self, call: RagCall) -> str:
        """Return the question, behind the earlier turns that it refers to if there is room."""
        whole = standalone_question(call)
        long = (
            len(self._support.tokens([self._support.without_special_tokens(whole)])[0].ids)
            > self._quarter
        )
        return call.question if long else whole

    def _beginning(self, text: str) -> str:
        """Cut a question or response sentence to its share of the input."""
        pieces = pieces_of(self._support, [text], self._quarter)
        return pieces[0].text if pieces else text

    def _pair(self, premise: str, question: str, hypothesis: str) -> Pair:
        """Make the input that the model was trained on."""
        texts = {"premise": premise, "question": question, "hypothesis": hypothesis}
        # In one pass: a document that says {hypothesis} is a document.
        filled = _PLACES.sub(lambda place: texts[place[1]], self._template)
        return filled if "{hypothesis}" in self._template else (filled, hypothesis)


def _singletons(numbers: Sequence[int]) -> list[list[int]]:
    """Make a window of each piece; none for a piece alone, which has been read already."""
    return [[number] for number in numbers] if len(numbers) > 1 else []


def relevance(
    model: LocalModel,
    call: SentencizedCall,
    question: str,
    stop: Event,
) -> tuple[list[float], list[float]]:
    """Compute P(relevant) and P(utilized) of each document sentence, in [0, 1].

    A sentence is relevant as it fits the question, and utilized as it fits the response sentence
    that it fits best; without a response, nothing is utilized.

    Args:
        model: a classifier of pairs, or an encoder.
        call: the call.
        question: its question, as it can be read alone.
        stop: set to cancel.

    Raises:
        JudgeOutputError, JudgeError: as `LocalModel.probabilities`.
    """
    asking = [question, *(without_markers(s.text) for s in call.response)]
    asking = [model.without_special_tokens(text) for text in asking]
    documents = [model.without_special_tokens(sentence.text) for sentence in call.documents]
    pairs = [(text, document) for document in documents for text in asking]
    if model.kind == "embedding":
        own = [RELEVANT] + [UTILIZED] * len(call.response)
        cosines = zip(model.cosines(pairs, stop), own * len(documents), strict=True)
        values = [sigmoid(a + b * cosine) for cosine, (a, b) in cosines]
    else:
        values = model.probabilities(pairs, stop)
    rows = [values[n : n + len(asking)] for n in range(0, len(values), len(asking))]
    return [row[0] for row in rows], [max([0.0, *row[1:]]) for row in rows]


def _check(given: Mapping[str, Any]) -> None:
    """Check the arguments that no model is needed for."""

    def refuse(name: str, why: str) -> None:
        """Raise the error of an argument."""
        raise ConfigurationError(name, given[name], why)

    if not 0 < given["threshold"] < 1:
        refuse("threshold", "use a number between 0 and 1")
    for name in ("max_windows", "max_pairs", "batch_size", "threads"):
        if name != "threads" or given[name] is not None:
            whole_number(name, given[name])
    if given["template"] is not None and "{premise}" not in given["template"]:
        refuse("template", "should hold {premise}")
    if given["pooling"] not in (None, "mean", "cls"):
        refuse("pooling", "use mean or cls")
    if given["relevance"] is None and given["pooling"] is not None:
        refuse("pooling", "is for a model for relevance (`relevance=`)")


def _rounded(keys: Sequence[str], probabilities: Sequence[float]) -> dict[str, float]:
    """Give each key its probability, rounded."""
    return {key: round(p, DIGITS) for key, p in zip(keys, probabilities, strict=True)}


def _values_of(own: Sequence[str], keys: Sequence[str], values: Sequence[float]) -> list[float]:
    """Return the values that belong to `own`, some of the keys."""
    by_key = dict(zip(keys, values, strict=True))
    return [by_key[key] for key in own]


def _likeliest(keys: Sequence[str], probabilities: Sequence[float]) -> tuple[str, ...]:
    """List the likeliest sentences, as many as the probabilities sum up to, none below `_POSSIBLE`.

    By a threshold alone, an encoder's even probabilities would label none, and the scores would be
    far from what the same probabilities let expect.
    """
    count = int(fsum(probabilities) + 0.5)
    ranked = sorted(range(len(keys)), key=lambda n: (-probabilities[n], n))[:count]
    return tuple(keys[n] for n in sorted(ranked) if probabilities[n] >= _POSSIBLE)


def _absolute(value: object) -> object:
    """Make the path of a file or folder absolute, for a process in another folder.

    A text counts as a path only if it exists; whatever else is returned as it is.
    """
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).exists()):
        return Path(value).absolute()
    return value  # models that are loaded, or the name of one on the hub
