#!/bin/bash
# Says hello from Bash: the same lines as every other hello plugin.
set -euo pipefail

count_primes_below() {
  local limit=$1 n multiple count=0
  local -a composite=()
  for ((n = 2; n < limit; n++)); do
    [[ -n ${composite[n]-} ]] && continue
    count=$((count + 1))
    for ((multiple = n * n; multiple < limit; multiple += n)); do composite[multiple]=1; done
  done
  echo "$count"
}

greeting="hello from Bash ${BASH_VERSION%%(*}"
echo "$greeting"
for argument in "$@"; do echo "argument: $argument"; done
line=
read -r line || true
echo "standard input: ${line:-(empty)}"
echo "directory: $PWD"
echo "primes below 1000: $(count_primes_below 1000)"
mkdir -p out
echo "$greeting" >out/hello.txt
echo 'wrote: out/hello.txt'
