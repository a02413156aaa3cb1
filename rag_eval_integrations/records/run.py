"""`Run`: which invocation of a command made a row of EVALS."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field, PlainSerializer, model_validator

from rag_eval_integrations.records._json import Record, Text

_LONGEST_RUN = 2_000


class Run(Record):
    """The run that an evaluation was made in: the same in every row of one invocation.

    Nothing else depends on it: no score, key or fingerprint, and neither resuming nor comparing.
    """

    id: Text
    """Made anew for each `rag-eval run` and `score`."""
    name: Text | None = None
    start: Annotated[AwareDatetime, PlainSerializer(datetime.isoformat)]
    revision: Text | None = None
    """Of the code, such as a git commit; `-dirty` at its end where files were changed since."""
    tags: dict[Text, Text] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_short(self) -> Run:
        """Check the length as JSON: it stands in every row.

        Raises:
            ValueError: it is above 2,000 bytes.
        """
        if len(self.model_dump_json(ensure_ascii=True)) > _LONGEST_RUN:
            why = f"should be at most {_LONGEST_RUN:,} bytes of JSON in all"
            raise ValueError(f"name, revision and tags {why}")
        return self
