#!/bin/sh
# Notes what is asked of update-rc.d, and makes the links.
echo "update-rc.d $*" >> ROOT/box/commands
mkdir -p /etc/rc2.d
case "$*" in
*defaults*) touch "/etc/rc2.d/S99$2" ;;
*remove*) rm -f "/etc/rc2.d/S99$2" ;;
esac
