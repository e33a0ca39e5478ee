"""Tiny archives with the names and layouts of the real ones, for the tests of `scripts/prepare-*.sh`."""

import gzip
import hashlib
import html
import io
import random
import tarfile
import zipfile

from tests.integration.preparing import Workplace

WORDS = {
    "en": ("Small old happy loud", "men dogs boys girls", "run sleep jump sing"),
    "de": ("Kleine alte glückliche laute", "Männer Hunde Jungen Mädchen", "laufen schlafen springen singen"),
    "fr": ("Petits vieux heureux bruyants", "hommes chiens garçons filles", "courent dorment sautent chantent"),
    "ro": ("Mici bătrâni fericiţi zgomotoși", "bărbaţi câini băieţi prieteni", "aleargă dorm sar cântă"),
    "zh": ("小 老 快乐的 吵闹的", "男人 狗 男孩 女孩", "跑步 睡觉 跳跃 唱歌"),
}


def sentences(language, count, seed):
    """Return sentences; they are the same in every language."""
    generator = random.Random(seed)
    adjectives, nouns, verbs = (words.split() for words in WORDS[language])
    for _ in range(count):
        words = [words[generator.randrange(4)] for words in (adjectives, nouns, verbs, nouns, verbs)]
        yield f"{''.join(words)} & 你。" if language == "zh" else f"{' '.join(words[:3])} & {' '.join(words[3:])}."


def text(language, count, seed, *more):
    return "".join(f"{line}\n" for line in [*sentences(language, count, seed), *more]).encode()


def sgm(kind, language, count, seed, translator="ref"):
    segments = "\n".join(
        f'<seg id="{n}">{html.escape(line)}</seg>' for n, line in enumerate(sentences(language, count, seed), 1)
    )
    document = f'<doc sysid="{translator}" docid="d">\n<p>\n{segments}\n</p>\n</doc>'
    return f'<{kind}set setid="s">{document}</{kind}set>\n'.encode()


def pack(folder, name, members):
    """Write an archive of the format of its name."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member, content in members.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    content = packed.getvalue()
    (folder / name).write_bytes(content if name.endswith(".tar") else gzip.compress(content, mtime=0))


def pair(stem, languages, count, seed, suffix="", more=((), ())):
    """Return the two members of a part of a training set."""
    return {f"{stem}.{language}{suffix}": text(language, count, seed, *last) for language, last in zip(languages, more)}


def newstest(stem, languages, count, seed):
    kinds = zip(("src", "ref"), languages)
    return {f"{stem}-{kind}.{language}.sgm": sgm(kind, language, count, seed) for kind, language in kinds}


LONG = "so " * 300
EN_DE = {
    "training-parallel-europarl-v7.tgz": {
        **pair("training/europarl-v7.de-en", ("en", "de"), 12, 1, more=(["", LONG], ["leer", LONG])),
        **pair("training/europarl-v7.cs-en", ("en", "de"), 3, 2),
    },
    "training-parallel-commoncrawl.tgz": {
        **pair(
            "commoncrawl.de-en",
            ("en", "de"),
            9,
            3,
            more=(["A\tbroken \ufffd one", "A well-known\ttab\u200b.\r"], ["B", "Tabulator hier"]),
        ),
        "commoncrawl.de-en.annotation": b"where it was found\n",
    },
    "training-parallel-nc-v9.tgz": pair("training/news-commentary-v9.de-en", ("en", "de"), 7, 4),
    "dev.tgz": {
        **pair("dev/newstest2012", ("en", "de", "fr"), 3, 5, more=((), (), ())),
        **pair("dev/newstest2013", ("en", "de", "fr"), 4, 6, more=((), (), ())),
    },
    "test-full.tgz": {
        **newstest("test-full/newstest2014-deen", ("en", "de"), 5, 7),
        **newstest("test-full/newstest2014-deen", ("de", "en"), 5, 7),
        **newstest("test-full/newstest2014-fren", ("en", "fr"), 5, 8),
    },
}
GIGA = pair("giga-fren.release2.fixed", ("en", "fr"), 6, 9)
EN_FR = {
    "training-parallel-europarl-v7.tgz": pair("training/europarl-v7.fr-en", ("en", "fr"), 12, 1),
    "training-parallel-commoncrawl.tgz": pair("commoncrawl.fr-en", ("en", "fr"), 9, 3),
    "training-parallel-un.tgz": pair("un/undoc.2000.fr-en", ("en", "fr"), 8, 2),
    "training-parallel-nc-v9.tgz": pair("training/news-commentary-v9.fr-en", ("en", "fr"), 7, 4),
    "training-giga-fren.tar": {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in GIGA.items()},
    "dev.tgz": EN_DE["dev.tgz"],
    "test-full.tgz": EN_DE["test-full.tgz"],
}
ZH_EN = {
    "training-parallel-nc-v12.tgz": pair(
        "training/news-commentary-v12.zh-en", ("zh", "en"), 12, 1, more=(["字" * 300], [LONG])
    ),
    "UNv1.0.en-zh.tar.gz": pair("en-zh/UNv1.0.en-zh", ("zh", "en"), 9, 2),
    "dev.tgz": newstest("dev/newsdev2017-zhen", ("zh", "en"), 4, 3),
    "test.tgz": newstest("test/newstest2017-zhen", ("zh", "en"), 5, 4),
}
CWMT = {"casia2015/casia2015": "ch", "casict2015/casict2015": "ch", "datum2015/datum": "ch", "neu2017/NEU": "cn"}
CWMT.update({f"datum2017/Book{number}": "cn" for number in range(1, 21)})
EN_RO = {
    "training-parallel-ep-v8.tgz": pair("training-parallel-ep-v8/europarl-v8.ro-en", ("en", "ro"), 12, 1),
    "en-ro.txt.zip": {**pair("SETIMES.en-ro", ("en", "ro"), 9, 2), "README": b"SETIMES\n"},
    "dev-romanian-updated.tgz": newstest("dev/newsdev2016-enro", ("en", "ro"), 4, 3),
    "test.tgz": {
        **newstest("test/newstest2016-enro", ("en", "ro"), 5, 4),
        **newstest("test/newstest2016-roen", ("ro", "en"), 5, 4),
    },
}
OF_SCRIPT = {"wmt14-en-de": EN_DE, "wmt14-en-fr": EN_FR, "wmt17-zh-en": ZH_EN, "wmt16-en-ro": EN_RO}
RELEASES = ["LDC2002E18", "LDC2003E07", "LDC2003E14", "LDC2004T07", "LDC2004T08", "LDC2005T06"]
EVALUATIONS = {
    "LDC2010T11/nist_openmt_2003/data/mt03_chinese_evalset_v0": 3,
    "LDC2010T12/nist_openmt_2004/data/mt04_chinese_evalset_v1": 4,
    "LDC2010T14/nist_openmt_2005/data/mt05_chinese_evalset_v0": 5,
    "LDC2010T17/nist_openmt_2006/data/mt06_chinese_evalset_nist_part_v1": 6,
}


def make_archives(folder, archives):
    for name, members in archives.items():
        pack(folder, name, members)
    whole = folder / "UNv1.0.en-zh.tar.gz"
    if whole.exists():  # the real archive has two pieces
        content = whole.read_bytes()
        whole.unlink()
        (folder / f"{whole.name}.00").write_bytes(content[:100])
        (folder / f"{whole.name}.01").write_bytes(content[100:])


def make_cwmt(folder):
    for seed, (stem, suffix) in enumerate(CWMT.items()):
        (folder / stem).parent.mkdir(parents=True, exist_ok=True)
        for language, name in (("zh", suffix), ("en", "en")):
            (folder / f"{stem}_{name}.txt").write_bytes(text(language, 2, 100 + seed))


def make_ldc(folder):
    for seed, release in enumerate(RELEASES):
        (folder / release).mkdir()
        for language in ("zh", "en"):
            (folder / release / f"{release}.{language}").write_bytes(text(language, 4, seed))
    for stem, seed in EVALUATIONS.items():
        (folder / stem).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{stem}.xml").write_bytes(sgm("src", "zh", seed, seed))
        translations = [sgm("ref", "en", seed, seed + 10 * number, f"E0{number}") for number in range(4)]
        (folder / f"{stem}-ref.xml").write_bytes(b"".join(translations))


def write_checksums(file, folder):
    """Write the checksums of the archives in a folder, so that they are accepted."""
    addresses = [line.split()[1] for line in file.read_text().splitlines()]
    named = ((address, folder / address.rpartition("/")[2]) for address in addresses)
    sums = [
        f"{hashlib.md5(archive.read_bytes()).hexdigest()}  {address}\n"
        for address, archive in named
        if archive.exists()
    ]
    file.write_text("".join(sums))


def make_workplace(name, root):
    """Make a folder with the scripts, `archives` and `cwmt` for `prepare-NAME.sh`."""
    workplace = Workplace(root, f"prepare-{name}.sh")
    source = root / "archives"
    source.mkdir()
    if name == "nist-zh-en":
        make_ldc(source)
    else:
        make_archives(source, OF_SCRIPT[name])
        write_checksums(workplace.checksums, source)
    make_cwmt(root / "cwmt")
    return workplace
