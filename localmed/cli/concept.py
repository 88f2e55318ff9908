"""``localmed concept TERM``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, echo_wrapped, in_session, print_json, print_table
from localmed.cli.options import json_option, text_callback
from localmed.cli.speaking import columns, joined, text
from localmed.messages import ASIDE, CLAUSES
from localmed.presentation.neutral import words

if TYPE_CHECKING:
    from localmed.retrieval.concepts import Card
    from localmed.site.session import Session


@click.command("concept")
@click.argument("term", nargs=-1, required=True, callback=text_callback)
@click.option("--query", "-q", default="", metavar="TEXT", callback=text_callback,
              help="Put the relations nearest to this question first; it may spell out an abbreviation. "
              "- reads standard input, as it does for TERM.")  # fmt: skip
@click.option("--by-meaning", is_flag=True, help="With --query: order relations with a model (takes seconds).")
@json_option
@in_session
def command(session: Session, term: str, query: str, by_meaning: bool, as_json: bool) -> None:
    """Look up TERM in the concept graph: definition, synonyms and the ten best relations.

    TERM is a name in any spelling, a synonym, an abbreviation or an id such as DOID:1612. The graph comes from
    collections of kind "graph"; import one with: localmed import FILES -c doid --manifest corpora/doid.toml
    """
    card = session.concept(term, query, by_meaning)
    if as_json:
        print_json(card)
    else:
        _show(card, session.caller.language)


def _show(card: Card, language: str) -> None:
    concept = card.concept
    echo_wrapped(f"{concept.name} [{concept.id}]", hanging="  ", bold=True)
    if concept.definition:
        echo_wrapped(concept.definition, "  ", "  ")
        if concept.defined_in:
            echo_wrapped(f"({_dated(concept.defined_in.title, concept.defined_in.edition)})", "  ", "  ")
    else:
        echo(f"  {text('graph.no_definition')}")
    for name, values in (("synonyms", card.synonyms), ("codes", (*card.same, *card.codes))):
        if values:
            echo_wrapped(text(f"graph.{name}", names=joined(values, CLAUSES)), "  ", "    ")
    rows = [
        (relation.predicate.replace("_", " "), relation.subject_name, relation.object_name, relation.detail or "-",
         _dated(relation.source.title, relation.source.edition))
        for relation in card.relations
    ]  # fmt: skip
    print_table(_ordered(card, len(rows)), columns("relation", "of", "to", "detail", "source"), rows)
    if card.others:
        others = joined((f"{other.name} [{other.id}]" for other in card.others), CLAUSES)
        echo_wrapped(text("graph.others", names=others), hanging="  ")
    for note in card.notes:
        echo_wrapped(words(note, language), hanging="  ")


def _ordered(card: Card, shown: int) -> str:
    if card.ordered_by in ("kind", "words"):
        code = "graph.relations" if card.ordered_by == "kind" else "graph.relations_by_words"
        return text(code, shown=shown, total=card.total)
    return text("graph.relations_by_model", shown=shown, total=card.total, model=card.ordered_by)


def _dated(title: str, edition: str) -> str:
    return joined((title, edition) if edition else (title,), ASIDE)
