"""`fairseq-capsule doctor`: one line for each requirement of the package, and how to fix what is wrong."""

import argparse
import contextlib
import json
import logging
import sys
import warnings
from dataclasses import asdict
from typing import Iterator, List

from fairseq_capsule_lab.environment import checks as environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")


def run(args: argparse.Namespace) -> int:
    findings: List[environment.Finding] = []
    for check in environment.checks():
        with _quiet_imports():
            finding = environment.examine(check)
        findings.append(finding)
        if not args.json:
            print(_line(finding), flush=True)  # the next check may take seconds
    failed = [finding.name for finding in findings if finding.status == environment.FAIL]
    versions = environment.versions()
    if args.json:
        print(json.dumps({"ok": not failed, "findings": [asdict(f) for f in findings], "versions": versions}))
    else:
        found = ", ".join(f"{name} {version}" for name, version in versions.items())
        print(f"\nversions, to copy into a bug report: {found}")
        print(f"{len(failed)} to fix: {', '.join(failed)}" if failed else "nothing to fix")
    return 1 if failed else 0


def _line(finding: environment.Finding) -> str:
    line = f"{finding.status:<4}  {finding.name:<22}  {finding.detail}"
    return f"{line}\n{'':<28}  fix: {finding.fix}" if finding.fix else line


@contextlib.contextmanager
def _quiet_imports() -> Iterator[None]:
    """Keep what packages print during their import out of the table and of the JSON."""
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
