#!/bin/sh
# status.sh JOB: running, success or failed
found=$(kubectl get "$1" --output 'jsonpath={.status.succeeded} {.status.failed}') || found='0 1'
case $found in
    1*) echo success ;;
    *[1-9]) echo failed ;;
    *) echo running ;;
esac
