"""A failed run's log, from its bytes to the layer, the cause and the fix.

places -> sources -> chunks -> lines -> incidents -> matches -> findings; the rules are data, in `rules/`.
"""

from __future__ import annotations

from toolkit.triage.diagnosis import diagnose
from toolkit.triage.document import diagnosis_document, diagnosis_schema
from toolkit.triage.rules import Rule, RuleBook, add_rules, read_rules, rule_faults, shipped_rules
from toolkit.triage.values import LAYERS, Diagnosis, Evidence, Finding, Layer

__all__ = [
    "LAYERS",
    "Diagnosis",
    "Evidence",
    "Finding",
    "Layer",
    "Rule",
    "RuleBook",
    "add_rules",
    "diagnose",
    "diagnosis_document",
    "diagnosis_schema",
    "read_rules",
    "rule_faults",
    "shipped_rules",
]
