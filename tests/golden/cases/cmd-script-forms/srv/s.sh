#!/bin/sh
echo script $@
