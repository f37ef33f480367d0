#!/bin/sh
echo {{ grains['id'] }} {{ x }}
