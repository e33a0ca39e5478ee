"""The tables of what is chosen after a training: experiments/after_training.py."""

from experiments import after_training

ITERATIONS = "system,option,iterations,trained_with,bleu,nll\nGRET,x,1,3,{},2.3\nGRET,x,3,3,30,2.3\n"


def write_seed(folder, losses, bleus):
    """Two epochs, with the total loss and NLL of each, and BLEU of the validation set; on the tests 30 and 31."""
    folder.mkdir()
    lines = [
        f"epoch 0{31 + i} | valid on 'valid' subset | loss {loss} | nll_loss {nll} | ppl 5"
        for i, (loss, nll) in enumerate(losses)
    ]
    (folder / "valid.log").write_text("\n".join(lines), encoding="utf-8")
    rows = [f"{31 + i},valid,{bleu}" for i, bleu in enumerate(bleus)]
    rows += [f"{31 + i},{split},{30 + i}" for i in range(2) for split in after_training.TESTS]
    (folder / "epochs.csv").write_text("\n".join(["epoch,split,bleu", *rows]), encoding="utf-8")
    for place, split in enumerate(after_training.TESTS):
        (folder / f"iterations-{split}.csv").write_text(ITERATIONS.format(30 + place), encoding="utf-8")


def test_each_criterion_chooses_its_epoch(tmp_path, capsys):
    write_seed(tmp_path / "seed6", [(4.1, 2.5), (4.2, 2.4)], [38, 39])
    write_seed(tmp_path / "seed10", [(4.2, 2.5), (4.1, 2.4)], [39, 38])
    after_training.main([str(tmp_path)])
    printed = capsys.readouterr().out
    for line in (
        "| total loss | 31, 32 | 30.50 ± 0.71 |",
        "| NLL | 32, 32 | 31.00 ± 0.00 |",
        "| BLEU | 32, 31 | 30.50 ± 0.71 |",
    ):
        assert line in printed
    assert "| GRET | 1.00 ± 0.00 | 0.00 ± 0.00 |" in printed  # the mean of 0, 1 and 2


def test_a_seed_counts_in_the_tables_that_it_has(tmp_path, capsys):
    for seed in (6, 7):
        write_seed(tmp_path / f"seed{seed}", [(4.1, 2.5), (4.2, 2.4)], [38, 39])
    for split in after_training.TESTS:
        (tmp_path / f"seed7/iterations-{split}.csv").unlink()
    after_training.main([str(tmp_path)])
    printed = capsys.readouterr().out
    assert "| NLL | 32, 32 | 31.00 ± 0.00 |" in printed
    assert "| GRET | 1.00 | 0.00 |" in printed
