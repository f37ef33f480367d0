#!/bin/sh
echo "{{ who }} {{ what }}"
