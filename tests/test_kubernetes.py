"""The states of Kubernetes jobs that Snakemake receives."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "workflow" / "profiles" / "kubernetes" / "status.sh"
# Prints STATUS after `x` as the jsonpath of the script does. A job that does not exist is an error without the option.
KUBECTL = """#!/bin/sh
[ "$STATUS" != unreachable ] || exit 1
if [ "$STATUS" = missing ]; then
    case $* in *--ignore-not-found*) exit 0 ;; *) exit 1 ;; esac
fi
case $* in *jsonpath=x*) printf 'x ' ;; esac
printf %s "$STATUS"
"""


@pytest.mark.parametrize(
    "status, expected",
    [
        (" ", "running"),
        ("1 ", "success"),
        (" 1", "failed"),
        (" 10", "failed"),
        ("missing", "failed"),
        ("unreachable", "running"),
    ],
)
def test_only_a_failed_or_missing_job_is_failed(tmp_path, status, expected):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "STATUS": status}
    found = subprocess.run([SCRIPT, "job.batch/x"], env=environment, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, f"{expected}\n")
