#!/bin/sh
echo "script $@"
