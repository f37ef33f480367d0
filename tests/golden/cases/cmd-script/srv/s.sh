#!/bin/sh
echo args: "$@"
echo $V
pwd
exit ${R:-0}
