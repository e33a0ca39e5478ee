#!/bin/sh
# status.sh JOB: running, success or failed
# A job that does not exist has failed: nothing is printed for it. After an error of kubectl, Snakemake asks again.
found=$(kubectl get "$1" --ignore-not-found --output 'jsonpath=x {.status.succeeded} {.status.failed}') || found=x
case $found in
    '') echo failed ;;
    'x 1'*) echo success ;;
    *[1-9]*) echo failed ;;
    *) echo running ;;
esac
