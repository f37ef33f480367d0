#!/bin/sh
echo "script $* $GREETING"
exit ${STATUS:-0}
