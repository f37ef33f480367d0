#!/bin/sh
# Notes what is asked of update-rc.d, and takes the links away.
echo "update-rc.d $*" >> ROOT/box/commands
[ "$1" != refuses ] || exit 1
[ "$2" != disable ] || rm -f /etc/rc2.d/S[0-9][0-9]"$1"
