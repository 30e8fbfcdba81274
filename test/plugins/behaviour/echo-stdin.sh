#!/bin/bash
# Copies standard input to standard output, byte for byte.
exec cat
