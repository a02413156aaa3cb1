"""What `OnnxJudge` and `TransformersJudge` share: calls ─▶ pairs ─▶ probabilities ─▶ labels.

_config      a model's files ─▶ its kind, length and labels; which output means what
_backend     texts ─▶ batches ─▶ probabilities; each judge has a backend of its own
_premises    the document sentences that are read together, in windows that fit the model
_support     response sentences ─▶ P(supported), and the document sentences that carry them
_relevance   document sentences ─▶ P(relevant), P(utilized)
_judge       `ReaderJudge`: a thread, the order of it all, labels
"""
