#!/usr/bin/env bash
# Try what README shows on another Python, in a clone of the last commit: its example, `make demo` and `make test`.
#
#     [FAIRSEQ=source] try-python.sh [--debian RELEASE] VERSION OUT
#
#   --debian RELEASE  in a new Debian, such as trixie, which debootstrap makes in OUT/root; this requires root. A Debian that is
#                     there already is used: give it what yours needs, such as certificates. Variables of pip are kept
#   VERSION           the Python: python3.13 for 3.13, of the PATH or of this Debian
#   OUT               a folder for the clone and the output of each command
#
# Debian gets make, venv and, once the installation asks for them, a compiler and Python's headers. At the end the script
# prints the versions, what the example printed, the BLEU of the demo and the last line of the tests, or the last line of an error.

source "$(dirname "$0")/common.sh"

release=
if [[ ${1:-} == --debian ]]; then
    release=${2:-}
    [[ $release =~ ^[a-z]+$ ]] || die "--debian requires a release, such as trixie (see --help)"
    shift 2
fi
take_places "$@"
[ $# -eq 2 ] || die "give VERSION and OUT (see --help)"
version=$1
[[ $version =~ ^3\.[0-9]+$ ]] || die "VERSION must be a Python such as 3.13, not '$version'"
mkdir -p "$2"
out=$(cd "$2" && pwd)

if [ -n "$release" ]; then
    [ "$(id -u)" -eq 0 ] || die "--debian requires root"
    need debootstrap "install it (Debian: apt install debootstrap)"
    system=$out/root
    [ -e "$system/usr/bin/apt" ] || debootstrap --variant=minbase --include=ca-certificates "$release" "$system" >"$out/debootstrap.log" ||
        die "debootstrap failed: see $out/debootstrap.log"
else
    need "python$version" "install it, or give --debian"
    system=
fi
checkout=/fairseq-capsule # in the Debian
[ -n "$system" ] || checkout=$out/fairseq-capsule
export PYTHON=python$version # of scripts/install.sh, if the example makes no .venv
rm -rf "$system$checkout"
git clone --quiet "$root" "$system$checkout"

# A user has none of what common.sh sets. With PYTHONSAFEPATH the tests do not find each other.
unset PYTHONSAFEPATH PYTHONUTF8 LC_ALL

inside() { # COMMAND: runs a line of bash in the clone. The environment of this checkout is not on the PATH
    local line="cd $checkout && $1"
    if [ -n "$system" ]; then
        # What `unshare` mounts ends with it.
        # shellcheck disable=SC2016 # the inner shell expands them
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp unshare --mount bash -c '
            mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" bash -c "$1"' "$system" "$line"
    else
        PATH=${PATH#"$root/.venv/bin:"} bash -c "$line"
    fi
}
try() { # NAME COMMAND: its output goes to OUT/NAME.log. A failure ends nothing
    local status=0 TIMEFORMAT='  %0R s, %0U s of CPU time'
    echo "$1: $2"
    time inside "$2" >"$out/$1.log" 2>&1 </dev/null || status=$?
    [ $status -eq 0 ] || echo "  failed: see $out/$1.log"
    return $status
}
debian() { [ -z "$system" ] || try "apt-$1" "apt-get update && apt-get install --yes --no-install-recommends ${*:2}" || die "see $out/apt-$1.log"; }
readme=$system$checkout/README.md
last() { grep -v '^make: ' "$out/$1.log" | grep -E "${2:-.}" | tail -n 1; } # NAME [PATTERN]

debian venv make python3-venv
# shellcheck disable=SC2016 # these are backticks of Markdown
sed -n '/^```python$/,/^```$/{/^`/!p}' "$readme" >"$system$checkout/example.py"
try example "$(sed -n "s/^python3 -m venv/python$version -m venv/p" "$readme") && python example.py" || true
if ! try install "make install-train-plot" && grep -q 'Debian: apt install.* g++' "$out/install.log"; then
    last install
    debian compiler g++ python3-dev
    try install "make install-train-plot" || true
fi
try demo "make demo" || true
try test "make test" || true

cat <<END

| Python $version${release:+, Debian $release}${FAIRSEQ:+, FAIRSEQ=$FAIRSEQ} | |
|---|---|
| versions | $(inside ".venv/bin/fairseq-capsule doctor" 2>&1 | grep '^versions' || echo unknown) |
| README's example | $(last example) |
| make demo | $(last demo) |
| make test | $(last test ' (passed|failed|errors?) ' || last test) |
END
