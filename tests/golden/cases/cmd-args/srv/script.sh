#!/bin/sh
echo "script $* $GREETING $0" | sed 's#/[^ ]*/##'
exit ${STATUS:-0}
