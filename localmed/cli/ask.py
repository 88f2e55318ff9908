"""``localmed ask QUESTION``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localmed.cli.common import filter_options, json_option, opened, print_json, wanted
from localmed.domain import Answer, AnswerStatus, Evidence, Statement, Status

# What is printed around an answer, in the question's language.
TEXTS = {
    "en": {
        "extractive": "Quoted from the sources, word for word (no language model):",
        "abstained": "No answer: the library does not hold enough to answer this.",
        "searched": "Searched: {names}",
        "sources": "Sources",
        "page": "page {page}",
        "edition": "edition {edition}",
        "no_date": "no date",
        "withheld": "[a sentence was withheld: {reason}]",
        "show": "Open a source: localmed show PASSAGE --image page.png",
        "superseded": "SUPERSEDED",
    },
    "zh": {
        "extractive": "以下均为原文摘录（未使用语言模型）：",
        "abstained": "无法回答：资料库中没有足够的依据。",
        "searched": "已检索：{names}",
        "sources": "来源",
        "page": "第 {page} 页",
        "edition": "版本日期 {edition}",
        "no_date": "无日期",
        "withheld": "［一句未通过核对，已隐去：{reason}］",
        "show": "查看原文页面：localmed show 段落编号 --image page.png",
        "superseded": "已被取代",
    },
}
NOTES_ZH = {
    "The encoder of this profile does not know Chinese: only words were searched, and no meaning was compared":
        "当前配置的向量模型不支持中文：仅按词检索，未做语义比较",
    "Nothing found was relevant enough to answer from": "检索到的内容相关性不足，不能据以回答",
    "The question holds no word that can be searched for": "问题中没有可检索的词",
    "Every sentence failed its check and was withheld": "所有句子均未通过核对，已隐去",
}  # fmt: skip


@click.command("ask")
@click.argument("question")
@click.option("--trace", is_flag=True, help="Show the steps and their times.")
@filter_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, question: str, trace: bool, as_json: bool, **filters: Any) -> None:
    """Answer QUESTION from the library, or abstain and say what was searched."""
    with opened(ctx) as app:
        answer = app.ask(question, wanted(**filters))
    if as_json:
        print_json(answer)
        return
    show(answer)
    if trace:
        for step in answer.trace:
            detail = ", ".join(f"{name} {value}" for name, value in step.detail)
            click.echo(f"  {step.seconds * 1000:7.1f} ms  {step.name}: {detail}", err=True)


def show(answer: Answer) -> None:
    """Print an answer: label, sentences with their markers, notes, sources."""
    texts = TEXTS.get(answer.language, TEXTS["en"])
    if answer.status is AnswerStatus.ABSTAINED:
        click.secho(texts["abstained"], bold=True)
        click.echo(texts["searched"].format(names=", ".join(answer.searched)))
    else:
        click.secho(texts["extractive"], bold=True)
        for statement in answer.statements:
            click.echo(f"  {_line(statement, texts)}")
    for note in answer.notes:
        click.echo(f"* {NOTES_ZH.get(note, note) if answer.language == 'zh' else note}")
    if answer.evidence:
        click.secho(f"\n{texts['sources']}", bold=True)
        for each in answer.evidence:
            click.echo(_source(each, _pages(answer, each), texts))
        click.echo(texts["show"])


def _line(statement: Statement, texts: dict[str, str]) -> str:
    if statement.withheld:
        return texts["withheld"].format(reason=statement.verdict.reason if statement.verdict else "")
    markers = "".join(f"[{citation.marker}]" for citation in statement.citations)
    return f"{' '.join(statement.text.split())} {markers}"


def _pages(answer: Answer, evidence: Evidence) -> list[int]:
    """The pages that the answer cites of one source."""
    cited = {c.page for s in answer.statements for c in s.citations if c.marker == evidence.marker}
    return sorted(page for page in cited if page)


def _source(evidence: Evidence, pages: list[int], texts: dict[str, str]) -> str:
    passage = evidence.passage
    parts = [evidence.document_title]
    parts.append(texts["edition"].format(edition=evidence.edition) if evidence.edition else texts["no_date"])
    parts += [texts["page"].format(page=page) for page in pages]
    if passage.headings:
        parts.append(" > ".join(heading for heading in passage.headings if heading != evidence.document_title))
    if evidence.status is not Status.CURRENT:
        parts.append(texts["superseded"])
    described = ", ".join(part for part in parts if part)
    return f"  [{evidence.marker}] {described}\n      {Path(evidence.source).name}, {passage.id[:12]}"
