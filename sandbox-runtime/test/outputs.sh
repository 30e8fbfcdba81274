#!/bin/bash
# Files that a job leaves in /job/out: regular ones are copied, counted and hashed; anything else is named and left alone.
. "$(dirname "$0")/expect.sh"
bad=$build/test/misbehave
plugin=(--plugin "$bad" --plugin-name bad)
fresh() {
    rm -rf "$work/out"
    mkdir "$work/out"
}
# The reason that the record gives for a skipped name.
reason() {
    local i
    for ((i = 0; i < $(member 'outputs.skipped.#'); i++)); do
        if [ "$(member "outputs.skipped.$i.name")" = "$1" ]; then member "outputs.skipped.$i.reason"; fi
    done
}

fresh
expect 'hostile outputs' outcome=exited 'outputs.files.#=3' outputs.files.0.name=a/b.txt outputs.files.0.bytes=7 outputs.files.1.name=plain.txt outputs.files.2.name=secret \
    "outputs.files.1.sha256=$(printf 'hello\n' | sha256sum | cut -d' ' -f1)" -- "${plugin[@]}" --collect "$work/out" -- /plugin/bad outputs
check 'a link' [ "$(reason link)" = symlink ]
check 'a link to a directory' [ "$(reason directory-link)" = symlink ]
check 'a fifo' [ "$(reason fifo)" = fifo ]
check 'a socket' [ "$(reason socket)" = socket ]
check 'a sparse file of a terabyte' [ "$(reason sparse)" = too-large ]
check 'names that a record cannot hold' [ "$(grep -o bad-name "$work/result" | wc -l)" = 2 ]
check 'only these were copied' [ "$(cd "$work/out" && find . -type f | sort | tr '\n' ' ')" = './a/b.txt ./plain.txt ./secret ' ]
check 'with their contents' [ "$(cat "$work/out/a/b.txt" "$work/out/plain.txt")" = $'deeper\nhello' ]

fresh
expect 'out is a link to elsewhere' outcome=exited 'outputs.files.#=0' outputs.skipped.0.reason=no-directory -- "${plugin[@]}" --collect "$work/out" -- /plugin/bad linked-out
check 'nothing was copied' [ -z "$(ls "$work/out")" ]

fresh
# In memory: some disks take a millisecond for each file.
out=$work/out
if many=$(mktemp -d -p /dev/shm 2>/dev/null); then
    trap 'rm -rf "$work" "$many"' EXIT
    out=$many
fi
expect 'very many files' outcome=exited 'outputs.files.#=10000' 'outputs.skipped.1000.reason=too-many' -- "${plugin[@]}" --collect "$out" --tmp-size 128M -- /plugin/bad many-files 1000000
fresh
expect 'outputs of a killed job' outcome=wall-time-exceeded outputs.files.0.name=early -- --collect "$work/out" --wall 0.5 -- sh -c 'echo x >out/early; sleep 1000'
fresh
expect 'a large output' outcome=exited outputs.files.0.bytes=30000000 "outputs.files.0.sha256=$(head -c 30000000 /dev/zero | sha256sum | cut -d' ' -f1)" -- --collect "$work/out" -- sh -c 'head -c 30000000 /dev/zero >out/y'
expect 'nothing is collected unless asked for' outcome=exited 'outputs.files.#=0' -- -- sh -c 'echo x >out/x'
expect 'no such directory' outcome=setup-failed error.step=collect-dir error.errno=ENOENT -- --collect "$work/nowhere" -- true
expect 'all places share one limit' outcome=exited 'stdout=8388608' -- "${plugin[@]}" --tmp-size 8M -- /plugin/bad fill

finish
