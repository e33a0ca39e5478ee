#!/usr/bin/env bash
# Build the sdist and the wheel, and check them: their metadata, that no file is missing, and that the wheel works outside a
# checkout. Then move them to OUT.
#
#     check-package.sh OUT
#
# Files of the same names in OUT are replaced. Nothing else in OUT is touched.

source "$(dirname "$0")/common.sh"

take_folder "$@"
[[ ! -e $out || -d $out ]] || die "$out is not a folder: name a folder, or a new name"
out=$(realpath -m "$out")
cd "$root"

say() { echo "$program: $*"; }

quiet() { "${@:2}" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; die "$1 failed"; }; } # NAME COMMAND...

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$PWD/.venv/bin/python
export OMP_NUM_THREADS=1

say "build the sdist, and the wheel from it"
quiet "python -m build" "$python" -m build --no-isolation --outdir "$work/dist" .
"$python" -m twine check --strict "$work"/dist/*

say "compare the wheel with the sources"
sources() { find fairseq_capsule* -name '*.egg-info' -prune -o -type f ! -name '*.pyc' -print | LC_ALL=C sort; }
packed() { "$python" -m zipfile --list "$work"/dist/*.whl | awk '$1 ~ /^fairseq_capsule[^.]*\// {print $1}' | LC_ALL=C sort; }
quiet "the comparison of the checkout's files (<) with the wheel's (>)" diff <(sources) <(packed)

# The dependencies come from .venv, by a path file: installing torch again would take minutes. What .venv has of this
# package itself is found there only after what the wheel installs.
say "install the wheel in an environment of its own"
"$python" -m venv --without-pip "$work/env"
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
site "$python" >"$(site "$work/env/bin/python")/dependencies.pth"
pip() { "$python" -m pip --disable-pip-version-check --python "$work/env/bin/python" "$@"; }
pip install --quiet --no-index --no-deps "$work"/dist/*.whl
pip check
cd "$work"
PATH=$work/env/bin:$PATH
package=$(python -c 'import fairseq_capsule; print(*fairseq_capsule.__path__)')
[[ $package == "$work/env/"* ]] || die "the wheel does not come first: fairseq_capsule is imported from $package"
fairseq-capsule doctor

say "train one step by --user-dir $package, and inspect a sentence"
fairseq-capsule toy-corpus --train 20 --valid 8 --test 8 text
quiet fairseq-preprocess python -m fairseq_cli.preprocess -s en -t de --trainpref text/train --validpref text/valid \
    --testpref text/test --joined-dictionary --destdir bin
quiet fairseq-train python -m fairseq_cli.train bin --user-dir "$package" --arch capsule_transformer_tiny --optimizer adam \
    --criterion label_smoothed_cross_entropy --max-tokens 400 --max-update 1 --num-workers 0 --cpu --save-dir run
fairseq-capsule inspect run/checkpoint_last.pt bin --ids 0 --beam 1 --out pages
[ -s pages/index.html ] || die "inspect wrote no pages/index.html"
mkdir -p "$out"
mv -f dist/* "$out"
say "passed, and moved to $out"
