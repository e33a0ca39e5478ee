"""`fairseq-capsule share`: archives of results."""

import argparse

from fairseq_capsule_lab.cli.arguments import input_file, input_folder, output_file, output_folder
from fairseq_capsule_lab.runs import share


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    packing = commands.add_parser("pack", help="write an archive of all finished runs in a folder")
    packing.add_argument("runs", type=input_folder, metavar="RUNS", help="the folder of the runs")
    text = "the archive to write, such as results.tar.xz"
    packing.add_argument("archive", type=output_file, metavar="ARCHIVE", help=text)
    unpacking = commands.add_parser("unpack", help="write the files of an archive to a folder")
    unpacking.add_argument("archive", type=input_file, metavar="ARCHIVE", help="an archive that `pack` wrote")
    unpacking.add_argument("runs", type=output_folder, metavar="RUNS", help="the folder to write to")
    text = "the prepared data, such as data/multi30k; adds their sentences"
    unpacking.add_argument("--data", type=input_folder, help=text)


def run(args: argparse.Namespace) -> None:
    if args.action == "pack":
        share.pack(args.runs, args.archive)
    else:
        share.unpack(args.archive, args.runs, args.data)
