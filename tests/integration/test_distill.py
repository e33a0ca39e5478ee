"""The complete `scripts/distill.sh`, with a teacher that was trained for three epochs."""

import json
import re
import shutil
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from capsule_routing.errors import UserError
from capsule_routing.text.folders import settings_of
from fairseq_capsule.hub import load
from fairseq_capsule_lab.runs.teacher import collect
from tests.integration.commands import PATH, PLUGIN, run, wait_for
from tests.integration.preparing import Workplace, contents


@pytest.fixture
def workplace(tmp_path):
    place = Workplace(tmp_path, "distill.sh")
    (tmp_path / "fairseq_capsule").symlink_to(PLUGIN)
    return place


@pytest.fixture(scope="module")
def teacher(trained):
    return trained / "checkpoint_last.pt"


def targets(folder):
    """Return the target lines of a training set."""
    dictionary = Dictionary.load(str(folder / "dict.de.txt"))
    return [dictionary.string(line) for line in data_utils.load_indexed_dataset(f"{folder}/train.en-de.de", dictionary)]


def test_targets_are_translations_of_the_teacher(workplace, teacher, data):
    process = workplace.prepared("--shards", 3, "--beam", 2, "--max-tokens", 400, teacher, data)
    assert re.search(r"\n300 training sentences, (\d+) of them the teacher's", process.output)
    assert len(re.findall(r"(?m)^\d.out: \d+ lines$", process.output)) == 3
    options = "--gen-subset train --beam 2 --lenpen 0.8 --max-len-a 2 --max-len-b 10 --cpu --max-tokens 400".split()
    command = ("generate", data, "--path", teacher, "--required-batch-size-multiple", 1, *options)
    output = run(*command, env={"OMP_NUM_THREADS": "1"})  # the same batches and threads give the same rounding
    said = {int(number): text for number, text in re.findall(r"^H-(\d+)\t\S+\t(.*)$", output, re.MULTILINE)}
    own, distilled = targets(data), targets(workplace.out / "bin")
    assert len(distilled) == len(said) == len(own) == 300
    lengths = [len(line.split()) for line in own]  # a translation is as long as its source
    for number, line in enumerate(distilled):
        good = 0 < len(said[number].split()) < 2 * (lengths[number] + 1) + 10
        assert line == (said[number] if good else own[number])
    assert distilled != own
    names = {file.name for file in data.iterdir() if file.is_file()}
    assert {file.name for file in (workplace.out / "bin").iterdir()} == names
    assert settings_of(workplace.out)["lenpen"] == "0.8"
    counted = json.loads((workplace.out / "manifest.json").read_text(encoding="utf-8"))["counted"]
    assert counted[0].startswith("300 training sentences")


def test_a_student_reads_raw_text_as_the_data_was_prepared(workplace, teacher, data):
    prepared = workplace.root / "prepared"
    prepared.mkdir()
    (prepared / "bin").symlink_to(data)
    settings = {"script": "prepare.sh", "tokenise": "moses", "source": "en", "target": "de", "lower": "yes"}
    (prepared / "settings.json").write_text(json.dumps(settings))
    (prepared / "codes").write_text("#version: 0.2\na b</w>\n")
    workplace.stub("fairseq-generate", r"seq 0 299 | sed 's/.*/H-&\t-0.1\ta b/'")
    workplace.prepared("--shards", 1, teacher, prepared)
    (prepared / "codes").unlink()
    for folder in (workplace.out, workplace.out / "bin"):
        hub = load(teacher, folder)
        assert hub.string(hub.encode("A  C, b")) == "a c <unk> b"


def test_an_interrupted_run_is_resumed(workplace, teacher, data):
    real = shutil.which("fairseq-generate", path=workplace.path)
    workplace.stub("fairseq-generate", f'[[ "$*" != *"--distributed-rank 1"* ]] || kill -KILL 0; exec {real} "$@"')
    options = ("--shards", 3, "--beam", 1, "--processes", 1, teacher, data, "out")
    assert workplace.prepare(*options).returncode != 0
    done = {file.name: file.stat().st_mtime_ns for file in (workplace.out / "shards").glob("*.out")}
    assert list(done) == ["0.out"]
    workplace.unstub()
    process = workplace.prepare(*options)
    assert process.returncode == 0, process.errors
    assert (workplace.out / "shards/0.out").stat().st_mtime_ns == done["0.out"]
    before = contents(workplace.out)
    workplace.stub("fairseq-generate", "exit 1")
    again = workplace.prepare(*options)
    assert again.returncode == 0 and "bin: done before" in again.output
    assert contents(workplace.out) == before


def test_an_interruption_ends_the_teacher_too(workplace, teacher, data):
    workplace.path = f"{workplace.stubs}:{PATH}"  # the command handles the signal itself
    workplace.stub("fairseq-generate", "echo $$ >child; exec sleep 60")
    process = workplace.start("scripts/distill.sh", "--processes", 1, teacher, data, "out")
    wait_for(workplace.root / "child", process)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert workplace.run("kill", "-0", (workplace.root / "child").read_text().strip()).returncode != 0


def test_shards_of_another_teacher_are_refused(workplace, trained, teacher, data):
    workplace.stub("fairseq-generate", "echo 'out of luck' >&2; exit 1")
    process = workplace.prepare("--shards", 2, teacher, data, "out")
    assert workplace.refused(process, "stage '0.out' failed: out of luck (full log: ")
    process = workplace.prepare("--shards", 2, trained / "checkpoint1.pt", data, "out")
    assert workplace.refused(process, "out was prepared with other teacher: delete it, or name another folder")
    process = workplace.prepare("--shards", 2, "--max-tokens", 99, teacher, data, "out")
    assert workplace.refused(process, "out was prepared with max-tokens 4096, not max-tokens 99")


def test_a_teacher_of_another_dictionary_or_language_is_refused(workplace, teacher, data, tmp_path):
    shutil.copytree(data, tmp_path / "other")
    for language in ("en", "de"):
        file = tmp_path / "other" / f"dict.{language}.txt"
        file.write_text(file.read_text() + "new 1\n")
    process = workplace.prepare(teacher, tmp_path / "other", "out")
    assert workplace.refused(process, "its encoder's dictionary has ", "prepare the text with --codes and --dict of ")
    turned = tmp_path / "turned"
    shutil.copytree(data, turned)
    for file in list(turned.glob("*.en-de.*")):
        file.rename(turned / file.name.replace("en-de", "de-en"))
    process = workplace.prepare(teacher, turned, "out")
    assert workplace.refused(process, "it translates en-de, but ", " is de-en; give a checkpoint of de-en")
    assert workplace.refused(workplace.prepare(teacher, ".", "out"), "no binarised training set in it")
    assert not workplace.out.exists()


def test_bad_translations_are_counted(data, tmp_path, monkeypatch):
    finalize = MMapIndexedDatasetBuilder.finalize

    def write_wrong_offsets(builder, index):
        finalize(builder, index)
        Path(index).write_bytes(Path(index).read_bytes()[:-8] + b"\xff" * 8)

    monkeypatch.setattr(MMapIndexedDatasetBuilder, "finalize", write_wrong_offsets)
    shards, out = tmp_path / "shards", tmp_path / "bin"
    shards.mkdir()
    said = dict.fromkeys(range(300), "a")
    said.update({0: "", 1: "a " * 40, 2: "b c", 5: "b <unk>"})
    del said[7]
    lines = [f"H-{number}\t-0.1\t{text.strip()}\n" for number, text in reversed(said.items())]
    (shards / "0.out").write_text("".join(lines))
    with pytest.raises(UserError, match="1 translations are missing in shards: delete that folder and run the command"):
        collect(data, "en", "de", 1024, shards, tmp_path / "first")
    (shards / "0.out.skipped.log").write_text("1 samples have invalid sizes and will be skipped, max_positions=9")
    first, second = collect(data, "en", "de", 1024, shards, out)
    assert first.endswith("296 of them the teacher's; the others:")
    assert second == "1 empty, 1 over-long, 1 with <unk>, 1 skipped"
    own, distilled = targets(data), targets(out)
    assert [distilled[number] == own[number] for number in (0, 1, 5, 7)] == [True] * 4
    assert distilled[2] == "b c" and distilled[3] == "a"
