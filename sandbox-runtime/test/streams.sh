#!/bin/bash
# Output is bytes: exact up to the limit, counted and hashed in full, never waited for longer than the job lives.
. "$(dirname "$0")/expect.sh"
bad=$build/test/misbehave
plugin=(--plugin "$bad" --plugin-name bad)
digest() { sha256sum | cut -d' ' -f1; }
bytes() { "$bad" write "$1"; }

sha=$(bytes 8000000 | digest)
expect 'an 8 MB result' outcome=exited stdout.bytes=8000000 stdout.kept=8000000 "stdout.sha256=$sha" stdout.truncated=false -- "${plugin[@]}" --output-limit 8000000 -- /plugin/bad write 8000000
check 'and every byte of it arrived' [ "$(digest <"$work/stdout")" = "$sha" ]

expect 'one byte too many' outcome=output-exceeded stdout.bytes=1001 stdout.kept=1000 stdout.truncated=true "stdout.sha256=$(bytes 1001 | digest)" -- "${plugin[@]}" --output-limit 1000 -- /plugin/bad write 1001
check 'the cut is exact' [ "$(digest <"$work/stdout")" = "$(bytes 1000 | digest)" ]

expect 'exactly the limit' outcome=exited stdout.bytes=1000 stdout.truncated=false -- "${plugin[@]}" --output-limit 1000 -- /plugin/bad write 1000
expect 'a cut in the middle of a character' outcome=output-exceeded stdout.kept=3 -- --output-limit 3 -- printf 'ab\303\251'
check 'keeps the first half of it' [ "$(od -An -tx1 <"$work/stdout" | tr -d ' \n')" = 6162c3 ]
expect 'each stream has its own limit' outcome=output-exceeded stdout.kept=3 stdout.truncated=false stderr.kept=4 stderr.truncated=true -- --output-limit 4 -- sh -c 'printf abc; printf abcde >&2'
expect 'bytes that are no text' stdout.bytes=6 "stdout.sha256=$(printf '\000\377\n\000ab' | digest)" -- -- printf '\000\377\n\000ab'
expect 'standard input' outcome=exited stdin.bytes=8000000 "stdout=$sha  -" -- -- sha256sum < <(bytes 8000000)
expect 'input that nobody reads' outcome=exited exitCode=0 'usage.wallMs<2000' -- -- true < <(bytes 8000000)
expect 'no input' outcome=exited stdin.bytes=0 stdout= -- -- cat </dev/null
expect 'an input that never ends' outcome=exited 'usage.wallMs<2000' stdout=x -- -- head -c 1 < <(echo x; exec sleep 3)
expect '/dev/stdout and /dev/stderr can be opened' outcome=exited stdout=out stderr=err -- -- sh -c 'echo out >/dev/stdout; echo err >/dev/stderr'

# Every kind of file as the launcher's own output.
check 'a pipe' [ "$("$launcher" run --result "$work/result" --output-limit 2M -- head -c 1000000 /dev/zero | wc -c)" = 1000000 ]
check 'a reader that has enough' [ "$("$launcher" run --result "$work/result" -- yes 2>/dev/null | head -c 2)" = y ]
check 'ends the job as it would without a launcher' compare "$(member outcome) $(member signal)" = 'signaled 13'
"$launcher" run --result "$work/result" -- echo lost >&- 2>/dev/null
check 'a closed standard output' [ "$(member outcome)" = exited ]
"$launcher" run -- sh -c 'echo err >&2' 2>"$work/stderr"
check 'without --result it is the last line of standard error' [ "$(wc -l <"$work/stderr")" = 2 ]
tail -1 "$work/stderr" >"$work/result"
check 'in full' [ "$(member outcome)" = exited ]
"$launcher" run --result fd:5 -- echo out 5>"$work/result" >/dev/null
check '--result fd:N' [ "$(member stdout.bytes)" = 4 ]

finish
