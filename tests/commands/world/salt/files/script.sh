#!/bin/sh
echo "script $1"
exit "${2:-0}"
