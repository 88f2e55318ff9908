"""A chat model that stands in for a competent one in every role: it copies what the sources say. And its library."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from localmed.answering.role_table import ROLES
from localmed.config import Settings
from localmed.domain import Collection, Kind
from localmed.domain.ports import Message
from localmed.ingest.manifest import Manifest
from tests.fakes import import_into, write

ADRENALINE = """Anaphylaxis in adults

The dose of adrenaline in adults is 500 micrograms into the muscle of the thigh. Repeat the dose after five minutes if
there is no improvement. Do not give adrenaline as an intravenous bolus outside a monitored area.
"""
METFORMIN = """Type 2 diabetes in adults

Metformin is the first medicine for type 2 diabetes in adults. If eGFR is below 30, stop metformin. Metformin must not
exceed 1000 mg a day with an eGFR of 30 to 44.
"""
WARFARIN = """Warfarin

Warfarin is a medicine that makes blood take longer to clot. Take warfarin at the same time every day.
"""
STUDY = """Metformin in type 2 diabetes: a randomised trial

Metformin lowered HbA1c by 1.1 % in adults with type 2 diabetes.
"""
GUIDE = """Department guide

Cardiology

Cardiology sees adults with palpitations and a slow or irregular pulse.

Dermatology

Dermatology sees patients with a rash or itching.
"""
TEXTS = {
    "guideline": {"adrenaline.txt": ADRENALINE, "metformin.txt": METFORMIN},
    "leaflet": {"warfarin.txt": WARFARIN},
    "literature": {"study.txt": STUDY},
    "local": {"guide.txt": GUIDE},
}
DOSE = "What is the dose of adrenaline in adults?"
ORDER = "Warfarin 5 mg PO qhs\nMetformin 500 mg PO bid\nCBC in 3 days"
CASE = "Should metformin be continued in an adult with type 2 diabetes?"

_NUMBERED = re.compile(r"^\[(\d+)\] (.+)$", re.MULTILINE)
_CASE = re.compile(r"\n\(\d+\) ")
_LONG = re.compile(r"[a-z]{7,}")
_LINE = re.compile(r"<<<line \d+\n(.*?)\n>>>", re.DOTALL)


def imported(settings: Settings, folder: Any) -> Settings:
    """A library of ``TEXTS``, one collection a kind."""
    for kind, texts in TEXTS.items():
        documents = write(folder / kind, texts)
        import_into(settings, documents, manifest=Manifest(Collection(f"{kind}s", kind.title(), kind=Kind(kind))))
    return settings


def role_of(messages: Sequence[Message]) -> str:
    """The name of the role that ``messages`` ask for; "entailment" for none of ours."""
    instructions = messages[0].content
    for role in ROLES.values():
        if role.form and instructions in role.instructions.values():
            return role.name
    return "entailment"


def reply(messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Any:
    """A usable reply to a role that writes: sentences of the sources, words of the question, lines as they stand."""
    name, prompt = role_of(messages), messages[-1].content
    if name == "write":
        return _copied(prompt)
    if name == "plan":
        names = list(schema["properties"]) if schema else ["guideline"]
        return {source: [] if source == "graph" else ["adrenaline dose"] for source in names}
    if name == "plain_order":
        return {"lines": [f"The order says: {line}" for line in _LINE.findall(prompt)]}
    return WRITTEN.get(name, "")  # a role that chooses may ask for a word and its likelihood first: there is none


def _copied(prompt: str) -> Mapping[str, Any]:
    """At most two of the numbered sentences that share a long word with the question, which stands above them."""
    asked = set(_LONG.findall(prompt.partition("<<<")[0].lower()))
    about = [
        (int(number), text) for number, text in _NUMBERED.findall(prompt) if asked & set(_LONG.findall(text.lower()))
    ]
    statements = [{"text": text, "sentences": [number], "calculated": False} for number, text in about[:2]]
    return {
        "covers_patient": "yes",
        "statements": statements,
        "not_covered": [] if statements else ["all of it"],
        "look_for": "" if statements else "adrenaline",
    }


WRITTEN: dict[str, Any] = {
    "self_contained": {"question": DOSE},
    "retrieval_question": {"question": "What is warfarin?"},
    "decomposition": {"questions": ["What is dobutamine?", "Who invented the stethoscope?"]},
    "own_answer": {"sentences": ["It may be."]},
    "medical_terms": {"terms": ["Warfarin", "Metformin", "CBC"]},
    "pico": {"population": "adult with type 2 diabetes", "intervention": "metformin", "comparison": "", "outcome": ""},
    "graph_terms": {"terms": ["adrenaline"]},
    "pseudo_document": {"passage": "The dose is as follows."},
    "plan_feedback": {"score": 3, "suggestion": ""},
    "department": {"departments": []},
}


def label(messages: Sequence[Message], labels: Sequence[str]) -> str:
    """The label of a role that chooses: the first, but for a passage that shares no long word with the question."""
    prompt = messages[-1].content
    if role_of(messages) == "relevance":
        question, _, passage = prompt.partition("<<<")
        return labels[not set(_LONG.findall(question.lower())) & set(_LONG.findall(passage.lower()))]
    return labels[role_of(messages) in ("safety", "self_knowledge")]


def cases(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """The cases of a request for several labels, each as it would be asked alone."""
    prefix, *branches = _CASE.split(messages[-1].content)
    return [(*messages[:-1], Message("user", f"{prefix}\n{branch}")) for branch in branches]


def text(messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> str:
    """The reply as a server sends it."""
    value = reply(messages, schema)
    return value if isinstance(value, str) else json.dumps(value)


def served(messages: Sequence[Message], response_format: Mapping[str, Any]) -> str:
    """The reply to a request as it arrives at a server: a text, a label, or a label for each of several cases."""
    schema = response_format.get("json_schema", {}).get("schema", {})
    together = schema.get("properties", {}).get("labels")
    if together:
        return json.dumps({"labels": [label(case, together["items"]["enum"]) for case in cases(messages)]})
    labels = schema.get("enum")
    return label(messages, labels) if labels else text(messages, schema)
