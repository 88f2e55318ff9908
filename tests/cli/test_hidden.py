"""What a reader of groups gets from every command and option, of a library in which a collection is hidden from them.

Words that stand in hidden collections alone must never be printed, whoever names a hidden thing must get what an
unknown one gets, and two libraries that differ in what is hidden alone must print the same. A new command fails here
until it is walked too, a new option is walked at once: both come from click's own tree.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from localmed.cli.main import main
from localmed.domain.sources import digest
from localmed.process import confined
from tests.cli.conftest import Localmed, Ran
from tests.words import phrase, said

HIDDEN, GRAPH = "zulucollection", "yankeegraph"
MARKERS = ("zulu", "yankee", "xray", "whiskey", "quebec")  # names, title, text, term, file
NURSE = ("--as-group", "nurses")
UNKNOWN = "f" * 32
QUESTION = "Within which time should antibiotics be given in sepsis?"
VISIBLE = {
    "sepsis.txt": "Sepsis\n\nIn sepsis antibiotics should be given within one hour. Measure lactate in septic shock.\n",
    "older.txt": "Older sepsis leaflet\n\nIn sepsis antibiotics should be given within three hours of recognition.\n",
    "pain.md": "# Paracetamol\n\nThe maximum dose of paracetamol in adults is 4 g in 24 hours. It lowers fever.\n",
}
SECRET = "# Whiskey sepsis guideline\n\nIn sepsis whiskeymycin should be given within one hour of xrayitis.\n"
MORE = (
    "# Fever\n\n" + "Sepsis, lactate, antibiotics, paracetamol, shock and fever: whiskeymycin within one hour.\n\n" * 30
)
TERMS = """format-version: 1.2
ontology: doid

[Term]
id: DOID:1
name: xrayitis
def: "A whiskey disease with sepsis." []
synonym: "xray sepsis" EXACT []
"""


@dataclass(frozen=True)
class Hospital:
    """A library with its hidden document and passage, and files that a reader has."""

    localmed: Localmed
    document: str
    passage: str
    files: Path

    def nurse(self, *arguments: str) -> Ran:
        return self.localmed(*NURSE, *arguments)


def built(root: Path, ward: Path, secrets: dict[str, str]) -> Hospital:
    """``VISIBLE`` in ``ward`` may be read by everybody, ``secrets`` and the concept graph by doctors alone."""
    localmed, folders = Localmed(root / "data"), {}
    for name, texts in (("ward", VISIBLE), (HIDDEN, secrets), (GRAPH, {"doid.obo": TERMS})):
        folders[name] = ward if name == "ward" else root / name
        folders[name].mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folders[name] / file).write_text(text, "utf-8")
    localmed.ok("collections", "create", "ward", "--title", "Ward")
    for name, kind in ((HIDDEN, "guideline"), (GRAPH, "graph")):
        localmed.ok("collections", "create", name, "--title", f"Quebec {name}", "--kind", kind, "--group", "doctors")
    for name, folder in folders.items():
        localmed.ok("import", str(folder), "-c", name)
    document = localmed.id_of("Whiskey sepsis guideline")
    localmed.ok("documents", "supersede", localmed.id_of("Older sepsis leaflet"), "--by", document)
    files = root / "own"
    files.mkdir()
    passage = localmed.ok("documents", "show", document, "--json").json["passage_ids"][0]
    recording = files / "recording.json"
    answer = localmed.ok("ask", "What should be given in sepsis with whiskeymycin and xrayitis?", "--json",
                         "--record", str(recording)).out  # fmt: skip
    assert "whiskeymycin" in answer
    altered = answer.replace(HIDDEN, "ward")  # as who wants to see it would alter it, digest included
    (files / "kept.json").write_text(with_its_digest(altered), "utf-8")
    (files / "order.txt").write_text("Paracetamol 1 g orally every 8 hours for fever\n")
    (files / "answer.txt").write_text("In sepsis antibiotics are given within one hour.\n")
    (files / "sheet.csv").write_text("file,owner\npain.md,Dr Wu\n")
    (files / "lines.jsonl").write_text('{"id": "1", "question": "sepsis"}\n')
    return Hospital(localmed, document, passage, files)


def with_its_digest(answer: str) -> str:
    """An answer as JSON with the digest that belongs to it, which anybody can make."""
    values = {name: value for name, value in json.loads(answer).items() if name != "digest"}
    return json.dumps(values | {"digest": digest(json.dumps(values, sort_keys=True))}, ensure_ascii=False)


@pytest.fixture(autouse=True)
def in_this_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import by several processes leaves the network for good: later tests would not reach their servers."""
    monkeypatch.setattr(confined, "own_loopback", lambda: False)


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ward")  # of both: a document's id is made of its file's path too


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory, ward: Path) -> Hospital:
    return built(tmp_path_factory.mktemp("one"), ward, {"quebec.md": SECRET})


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, ward: Path) -> Hospital:
    return built(
        tmp_path_factory.mktemp("other"), ward, {"quebec.md": SECRET, "more.md": MORE, "most.md": f"# Most {MORE}"}
    )


# --- the commands -----------------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""

    def walked(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below
                yield from walked(below, (*words, name))
        if words not in UNTIL_STOPPED and (not isinstance(command, click.Group) or command.invoke_without_command):
            yield words, command

    yield from walked(main, ())


UNTIL_STOPPED = {("serve",), ("desktop",)}  # print an address only; what their pages show is walked in tests/web
ARGUMENTS = {  # by command: what it needs at least; {files} are the reader's own, {document} the hidden one
    "import": "{files}/answer.txt -c ward", "ask": "Q", "plan": "Q", "ebm": "Q", "verify": "{files}/answer.txt",
    "replay": "{files}/recording.json", "explain": "{files}/order.txt", "departments": "fever", "search": "Q",
    "concept": "sepsis", "show": "{passage}", "documents": "", "documents due": "",
    "documents govern": "{files}/sheet.csv -c ward", "documents list": "", "documents quarantine": "",
    "documents reinstate": "{document} --reason x", "documents remove": "{document}", "documents set": "{document}",
    "documents remark": "{passage} --off", "documents remarks": "",
    "documents sheet": "{new} -c ward", "documents show": "{document}", "documents supersede": "{document}",
    "documents withdraw": "{document} --reason x", "collections": "", "collections access": "ward",
    "collections create": "new", "collections delete": "ward", "collections list": "",
    "collections priority": "ward 3", "collections readers": "ward", "collections set": "ward",
    "collections update": "ward", "reindex": "", "generations": "", "generations confirm": "", "generations list": "",
    "generations prune": "", "generations rollback": "", "generations upgrade": "", "generations verify": "",
    "refresh": "", "refresh holds": "", "refresh list": "", "refresh release": "", "refresh show": "1",
    "canaries": "", "canaries accept": "x --reason y", "canaries watch": "x", "calibrate": "{files}/sheet.csv",
    "backup": "", "backup list": "",
    "backup verify": "", "restore": "{files}",
    "pack key": "{new}", "pack root": "{new} --key {files}/order.txt --key {files}/answer.txt",
    "pack build": "{files} {new} --root {files}/order.txt --version 1 --key {files}/order.txt --key {files}/answer.txt",
    "pack sign": "{files} --key {files}/order.txt", "pack trust": "{files}/order.txt", "pack inspect": "{files}",
    "pack import": "{files}", "repair": "",
    "models": "", "models add": "{files}", "models list": "", "models plan": "",
    "models remove": "qwen3-8b", "models use": "reranker none", "models verify": "", "host": "--status", "doctor": "",
    "models test": "",
    "incident": "x", "audit verify": "", "audit head": "", "audit export": "", "audit erase": "x --yes",
    "evidence": "{new}", "accounts list": "", "accounts password": "x",
    "tokens make": "x", "tokens list": "", "tokens revoke": "x",
    "review export": "{files}/lines.jsonl", "review import": "{files}/sheet.csv --key {files}/kept.json",
    "eval mcq": "--set jsonl:{files}/lines.jsonl --out {new}",
    "eval badges": "", "eval claims": "", "eval links": "", "eval retrieval": "", "eval stance": "",
    "train explore": "--set jsonl:{files}/lines.jsonl --out {new}", "train learn": "--out {new}",
    "train export": "--as x --out {new}", "train compare": "--planner x --set jsonl:{files}/lines.jsonl --out {new}",
}  # fmt: skip
VALUES = {  # of options that take a text, by name; else "sepsis"
    "--collection": "ward", "--manifest": "{files}/sheet.csv", "--answer": "{files}/kept.json", "--from": "2020",
    "--to": "2030", "--patient": "{files}/order.txt", "--strategy": "prompting", "--preset": "ebm", "--span": "0-5",
    "--by": "{document}", "--edition": "2020", "--effective-from": "2020-01-01", "--review-by": "2020-01-01",
    "--group": "nurses", "--reranker": "none", "--variants": "lexical", "--role": "encoder",
}  # fmt: skip
NEW = {"--record", "--leaflet", "--image", "--report", "--out", "--page"}  # options that name what is written
SHOWN_BY_NUMBER = "show 1 --answer {files}/kept.json"


def values_of(option: click.Option) -> list[str]:
    """What an option is walked with."""
    name = option.opts[0]
    if option.is_flag:
        return []
    if name in NEW:
        return ["{new}"]
    if isinstance(option.type, click.Choice):
        return list(map(str, option.type.choices))
    if isinstance(option.type, click.IntRange):
        return [str(max(int(option.type.min or 0), 1))]
    return [VALUES.get(name, "{files}/lines.jsonl" if isinstance(option.type, click.Path) else "sepsis")]


def invocations() -> Iterator[tuple[str, ...]]:
    """Each command alone, with ``--json``, and with each of its options and their values."""
    for words, command in commands():
        base = (*words, *ARGUMENTS[" ".join(words)].split())
        yield base
        as_json = ("--json",) if any("--json" in option.opts for option in command.params) else ()
        for option in command.params:
            if isinstance(option, click.Option) and option.opts[0] != "--help":
                name = option.opts[0]
                for value in values_of(option) or [""]:
                    own = (name, value) if value else (name,)
                    yield (*base, *own, *(as_json if name != "--json" else ()))
    for image in ((), ("--image", "{new}")):
        yield (*SHOWN_BY_NUMBER.split(), *image)


def filled(hospital: Hospital, invocation: tuple[str, ...], new: Path) -> list[str]:
    """``invocation`` with what its braces stand for."""
    named = {"files": str(hospital.files), "document": hospital.document, "passage": hospital.passage, "new": str(new)}
    return [QUESTION if part == "Q" else part.format_map(named) for part in invocation]


def printed(ran: Ran, new: Path) -> str:
    """What a command printed and wrote."""
    written = [new] if new.is_file() else sorted(path for path in new.rglob("*") if path.is_file())
    texts = [path.read_bytes().decode("utf-8", "replace") for path in written if path.suffix != ".png"]
    return "\n".join((ran.out, ran.err, *texts))


# --- what a reader gets -----------------------------------------------------------------------------------------------


def test_every_command_is_walked() -> None:
    assert {" ".join(words) for words, _ in commands()} == ARGUMENTS.keys()


@pytest.mark.slow
def test_no_command_or_option_prints_a_word_of_a_hidden_collection(hospital: Hospital, tmp_path: Path) -> None:
    assert "whiskeymycin" in hospital.localmed.ok("search", "whiskeymycin").out, "who may read it finds it"
    assert "xrayitis" in hospital.localmed.ok("concept", "xrayitis").out
    walked, done, seen = 0, 0, []
    for number, invocation in enumerate(invocations()):
        new = tmp_path / f"new{number}"
        ran = hospital.nurse(*filled(hospital, invocation, new))
        output = printed(ran, new).lower()
        output = output.replace(str(hospital.files).lower(), "")
        named = (*MARKERS, hospital.document[:10], hospital.passage[:10])
        known = " ".join(filled(hospital, invocation, new)).lower()
        seen += [(invocation, word) for word in named if word in output and word not in known]
        walked, done = walked + 1, done + (ran.code == 0)
        assert "traceback" not in output, invocation
        assert "unexpected" not in output, invocation
        assert not new.with_suffix(".png").exists()
    print(f"{len(ARGUMENTS)} commands, {walked} invocations, {done} of them to the end")
    assert seen == []
    assert walked > 250
    assert done > 100, "a walk that is refused everywhere shows nothing"
    assert not list(tmp_path.rglob("*.png"))


@pytest.mark.slow
def test_a_hidden_thing_is_as_unknown_as_one_that_is_not_there(hospital: Hospital, tmp_path: Path) -> None:
    for call in (
        ("show", "{document}"), ("show", "{passage}"), ("documents", "show", "{document}"),
        ("search", "sepsis", "-c", "{collection}"), ("ask", QUESTION, "-c", "{collection}"),
        ("documents", "list", "-c", "{collection}"), ("documents", "due", "-c", "{collection}"),
        ("documents", "quarantine", "-c", "{collection}"), ("plan", QUESTION, "-c", "{collection}"),
        ("concept", "{term}"), ("eval", "retrieval", "-c", "{collection}"),
        ("documents", "sheet", str(tmp_path / "s.csv"), "-c", "{collection}"),
    ):  # fmt: skip
        outputs = []
        there = {"document": hospital.document, "passage": hospital.passage, "collection": HIDDEN, "term": "xrayitis"}
        for named in (there, {"document": UNKNOWN, "passage": UNKNOWN, "collection": "nowhere", "term": "unheard"}):
            ran = hospital.nurse(*(part.format_map(named) for part in call))
            output = ran.out + ran.err
            for word in named.values():
                output = output.replace(word, "NAMED")
            outputs.append((ran.code, output))
        assert outputs[0] == outputs[1], call


CHANGING = re.compile(
    r'"seconds": [\d.e-]+|"digest": "\w+"|^ *[\d.]+ ms|"time": "[^"]*"', re.MULTILINE
)  # of two runs of the same


@pytest.mark.slow
def test_what_is_hidden_changes_nothing_of_what_is_printed(hospital: Hospital, other: Hospital) -> None:
    questions = (QUESTION, "What is the maximum dose of paracetamol?", "whiskeymycin in sepsis and fever", "败血症")
    asking = (("ask", "--check"), ("ask", "--preset", "ebm"), ("plan",), ("ebm",), ("search",), ("departments",))
    calls = [(*words, question, "--json") for question in questions for words in asking]
    calls += [
        ("documents", "list", "--json"), ("collections", "--json"), ("documents", "due", "--json"),
        ("verify", "{files}/answer.txt", "--json"), ("explain", "{files}/order.txt", "--json"), ("concept", "sepsis"),
        ("ask", QUESTION, "--status", "superseded", "--json"), ("documents", "show", "{older}", "--json"),
    ]  # fmt: skip
    older = hospital.localmed.ok("documents", "list", "--status", "superseded", "--json").json[0]
    assert older["replaced_by"] == hospital.document
    for call in calls:
        outputs = []
        for place in (hospital, other):
            ran = place.nurse(*(part.format_map({"files": place.files, "older": older["id"]}) for part in call))
            text = (ran.out + ran.err).replace(str(place.files), "").replace(str(place.localmed.data), "")
            outputs.append(CHANGING.sub("", text))
        assert outputs[0] == outputs[1], call


def test_a_kept_answer_is_resolved_against_the_catalogue(hospital: Hospital, tmp_path: Path) -> None:
    kept, image = hospital.files / "kept.json", tmp_path / "page.png"
    evidence = json.loads(kept.read_text("utf-8"))["evidence"]
    hidden = next(source for source in evidence if source["passage"]["document_id"] == hospital.document)
    assert hidden["passage"]["collection"] == "ward"
    hospital.nurse("show", hidden["marker"], "--answer", str(kept)).failed(2)
    visible = hospital.localmed.id_of("Sepsis")
    forged = tmp_path / "forged.json"
    forged.write_text(with_its_digest(kept.read_text("utf-8").replace(hospital.document, visible)), "utf-8")
    hospital.nurse("show", hidden["marker"], "--answer", str(forged), "--image", str(image)).failed(2)
    assert not image.exists()
    assert phrase("replay.hidden") in hospital.nurse("replay", str(hospital.files / "recording.json")).failed(2)
    hospital.localmed.ok("--as-group", "doctors", "replay", str(hospital.files / "recording.json"))


def test_the_id_of_a_hidden_successor_is_not_told(hospital: Hospital) -> None:
    for call in (("documents", "list", "--status", "superseded"), ("ask", QUESTION, "--status", "superseded"),
                 ("search", "sepsis", "--status", "superseded")):  # fmt: skip
        shown = hospital.nurse(*call, "--json").out
        assert hospital.document[:12] not in shown, call
        assert "Older sepsis leaflet" in shown, call
    (older,) = hospital.nurse("documents", "list", "--status", "superseded", "--json").json
    assert hospital.document[:12] not in hospital.nurse("documents", "show", older["id"], "--json").out


def test_settings_elsewhere_narrow_and_never_widen(
    hospital: Hospital, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, told = tmp_path / "data", said("finding.absent", name="whiskeymycin")  # by the reader's own word
    shutil.copytree(hospital.localmed.data, data, symlinks=True)
    copied, own = Localmed(data), tmp_path / "own.toml"
    (data / "localmed.toml").write_text('[reader]\ngroups = ["nurses"]\n')
    own.write_text("")
    monkeypatch.setenv("LOCALMED_CONFIG", str(own))
    assert "whiskey" not in copied.ok("search", "whiskeymycin").out.replace(told, "")
    for groups in ('["doctors"]', '["nurses", "doctors"]'):
        own.write_text(f"[reader]\ngroups = {groups}\n")
        assert "reader.groups" in copied("search", "whiskeymycin").failed(2)
    (data / "localmed.toml").write_text('[reader]\ngroups = ["nurses", "doctors"]\n')
    own.write_text('[reader]\ngroups = ["nurses"]\n')
    assert "whiskey" not in copied.ok("search", "whiskeymycin").out.replace(told, "")
    copied("--as-group", "doctors", "search", "whiskeymycin").failed(2)
