#!/bin/bash
# Leaves every trace it can of having run: canary.sh [FILE...]. For jobs that must be rejected: if there is no output,
# no out/canary.txt and none of the FILEs, then not one line of it ran, inside a sandbox or out of it.
echo 'canary ran'
for file in out/canary.txt "$@"; do
  mkdir -p "$(dirname "$file")" && echo 'canary ran' >"$file"
done
