#!/usr/bin/env python3
"""submit.py JOBSCRIPT: hands a step of Snakemake's to Kubernetes, and prints the Job's name."""

import json
import os
import re
import subprocess
import sys


def manifest(script: str, properties: dict, image: str, claim: str, mount: str) -> dict:
    """A Job that runs the script once, with the step's cores, memory, GPUs and time."""
    resources = properties["resources"]
    limits = {"cpu": str(properties["threads"]), "memory": f"{resources['mem_mb']}M"}
    if resources.get("gpu"):
        limits["nvidia.com/gpu"] = str(resources["gpu"])
    container = {
        "name": "step",
        "image": image,
        "command": ["/bin/sh", script],
        "resources": {"limits": limits},
        "volumeMounts": [{"name": "runs", "mountPath": mount}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "runs", "persistentVolumeClaim": {"claimName": claim}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"capsule-{properties['rule'].replace('_', '-')}-"},
        "spec": {"backoffLimit": 0, "activeDeadlineSeconds": 60 * resources["runtime"], "template": {"spec": pod}},
    }


def main() -> None:
    names = ("CAPSULE_IMAGE", "CAPSULE_CLAIM", "CAPSULE_MOUNT")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        sys.exit(f"{', '.join(missing)}: not set; workflow/profiles/kubernetes/config.yaml says what it is")
    with open(sys.argv[1], encoding="utf-8") as lines:
        properties = json.loads(re.search(r"^# properties = (.*)$", lines.read(), re.MULTILINE)[1])
    job = manifest(os.path.abspath(sys.argv[1]), properties, *(os.environ[name] for name in names))
    subprocess.run(
        ["kubectl", "create", "--filename", "-", "--output", "name"], input=json.dumps(job), text=True, check=True
    )


if __name__ == "__main__":
    main()
