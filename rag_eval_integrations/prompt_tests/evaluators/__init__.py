"""What is asked about outputs, tests and rules; each has its prompt, parser and version."""

from rag_eval_integrations.prompt_tests.evaluators.agreement import SpecAgreement
from rag_eval_integrations.prompt_tests.evaluators.groundedness import RuleGroundedness
from rag_eval_integrations.prompt_tests.evaluators.noncompliance import Basis, NonCompliance
from rag_eval_integrations.prompt_tests.evaluators.validity import InputValidity

__all__ = ["Basis", "InputValidity", "NonCompliance", "RuleGroundedness", "SpecAgreement"]
