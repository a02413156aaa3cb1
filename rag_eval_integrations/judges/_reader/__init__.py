"""What `OnnxJudge` and `TransformersJudge` share: calls ─▶ pairs ─▶ probabilities ─▶ labels.

_model       a model's files ─▶ its kind, length and labels; which output means what; pairs of texts
             ─▶ batches ─▶ probabilities. Each judge loads a `Backend` of its own
_support     response sentences ─▶ P(supported), and the document sentences that carry them, read
             in windows that fit the model; document sentences ─▶ P(relevant), P(utilized)
_judge       `ReaderJudge`: a thread, the order of it all, labels
"""
