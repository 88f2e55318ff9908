"""Chat templates as data, by name: how a conversation is written for each family of models.

The template inside a GGUF is a program and is never read. The templates here are a few strings from the models'
published descriptions. ``render`` separates markup from content: only markup is tokenised into control tokens, so that
a document that contains ``<|im_end|>`` cannot end a turn.

The beginning-of-sequence token belongs to the vocabulary, not to a template. A family without a system role gets the
system message before the first user message. A conversation ends with the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localmed.domain.errors import BadSettings, UsageError
from localmed.domain.ports import Message

Part = tuple[str, bool]  # text, is markup


@dataclass(frozen=True, slots=True)
class Template:
    """A turn is ``before`` (markup, role name, separator), the content, and ``after``; ``reply`` opens the model's.

    ``end`` is the control token that ends it. Without "system" in ``before`` there is no system role.
    """

    before: Mapping[str, tuple[Part, ...]]
    after: Mapping[str, tuple[Part, ...]]
    reply: tuple[Part, ...]
    end: str

    @property
    def marks(self) -> tuple[str, ...]:
        """The distinct control tokens that a model of this family must know."""
        parts = [part for side in (self.before, self.after) for turn in side.values() for part in turn]
        return tuple(dict.fromkeys(text for text, markup in (*parts, *self.reply, (self.end, True)) if markup))


def _turns(opening: str, separator: tuple[Part, ...], closing: tuple[Part, ...], names: Mapping[str, str]) -> Template:
    """A template whose turns differ only in the role's name."""
    before = {role: ((opening, True), (name, False), *separator) for role, name in names.items()}
    return Template(before, dict.fromkeys(names, closing), before["assistant"], closing[0][0])


_SAME = {"system": "system", "user": "user", "assistant": "assistant"}

_CHATML = _turns("<|im_start|>", (("\n", False),), (("<|im_end|>", True), ("\n", False)), _SAME)
_THOUGHT: tuple[Part, ...] = (("<think>", True), ("\n\n", False), ("</think>", True), ("\n\n", False))

TEMPLATES = {
    # Qwen to 2.5, Yi, Hermes and many others
    "chatml": _CHATML,
    # Qwen 3 would think first, which neither a schema nor a label allows: its thoughts are given as empty
    "qwen3": replace(_CHATML, reply=(*_CHATML.reply, *_THOUGHT)),
    # Llama 3, 3.1, 3.2, 3.3
    "llama3": _turns(
        "<|start_header_id|>", (("<|end_header_id|>", True), ("\n\n", False)), (("<|eot_id|>", True),), _SAME
    ),
    # Gemma 2 and 3, MedGemma: no system role
    "gemma": _turns(
        "<start_of_turn>",
        (("\n", False),),
        (("<end_of_turn>", True), ("\n", False)),
        {"user": "user", "assistant": "model"},
    ),
    # Mistral from version 3 of its tokenizer on: no system role, nothing opens the reply
    "mistral": Template(
        {"user": (("[INST]", True),), "assistant": ()},
        {"user": (("[/INST]", True),), "assistant": (("</s>", True),)},
        (),
        "</s>",
    ),
    # Phi 3 and 4
    "phi": Template(
        {role: ((f"<|{role}|>", True), ("\n", False)) for role in _SAME},
        dict.fromkeys(_SAME, (("<|end|>", True), ("\n", False))),
        (("<|assistant|>", True), ("\n", False)),
        "<|end|>",
    ),
}


def find_template(name: str) -> Template:
    """The template ``name``; raise ``BadSettings`` if there is none."""
    if name not in TEMPLATES:
        raise BadSettings("settings.no_template", name=name, templates=tuple(TEMPLATES))
    return TEMPLATES[name]


def render(template: Template, messages: Sequence[Message]) -> list[Part]:
    """``messages`` as parts up to the model's reply, with neighbouring content parts joined."""
    if not messages or messages[-1].role != "user":
        raise UsageError("chat.ends_with_user")
    parts: list[Part] = []
    for message in _merge_system(messages) if "system" not in template.before else messages:
        parts += [*template.before[message.role], (message.content, False), *template.after[message.role]]
    return _join([*parts, *template.reply])


def _merge_system(messages: Sequence[Message]) -> list[Message]:
    instructions = "\n\n".join(message.content for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    if not instructions:
        return others
    first = next(index for index, other in enumerate(others) if other.role == "user")
    merged = Message("user", f"{instructions}\n\n{others[first].content}")
    return [*others[:first], merged, *others[first + 1 :]]


def _join(parts: Sequence[Part]) -> list[Part]:
    joined: list[Part] = []
    for text, markup in parts:
        if joined and not markup and not joined[-1][1]:
            joined[-1] = (joined[-1][0] + text, False)
        elif text:
            joined.append((text, markup))
    return joined
