#!/bin/sh
sleep 5
