"""The texts that `fairseq-capsule prepare` binarises keep their numbers."""

from tests.integration.commands import PATH


def test_more_than_ten_test_sets_are_binarised_in_their_order(command, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", PATH)
    numbers = ["", *range(1, 12)]
    for name in ("train", "valid", *(f"test{number}" for number in numbers)):
        for language in ("en", "de"):
            text = tmp_path / f"out/bpe/{name}.{language}"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text("one\n")
    pair = [tmp_path / "out/bpe/train.en", tmp_path / "out/bpe/train.de"]
    tests = [word for _ in numbers for word in ("--test", *pair)]
    words = ["--source", "en", "--target", "de", "--train", *pair, "--valid", *pair, *tests]
    result = command("prepare", "own", "--dry-run", *words, tmp_path / "out")
    assert f"--testpref {','.join(f'bpe/test{number}' for number in numbers)} " in result.err
