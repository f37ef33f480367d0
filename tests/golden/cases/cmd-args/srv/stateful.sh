#!/bin/sh
echo
echo "changed=no comment=nothing"
