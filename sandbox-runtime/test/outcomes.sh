#!/bin/bash
# Every outcome, produced for real, with the exit code that a shell sees.
. "$(dirname "$0")/expect.sh"
bad=$build/test/misbehave
plugin=(--plugin "$bad" --plugin-name bad)

expect 'success' outcome=exited exitCode=0 signal=null error=null exit=0 stdout=hello 'oomVictims.#=0' -- -- echo hello
expect 'failure' outcome=exited exitCode=7 signal=null exit=7 -- -- sh -c 'exit 7'
expect 'death by signal' outcome=signaled exitCode=null signal=11 exit=139 -- -- sh -c 'kill -SEGV $$'
expect 'sleep under a wall limit' outcome=wall-time-exceeded signal=9 exit=137 'usage.wallMs>299' 'usage.wallMs<1500' -- --wall 0.3 -- sleep 1000
expect 'two spinning threads' outcome=cpu-time-exceeded exit=137 'usage.userMs>300' 'usage.userMs<900' -- "${plugin[@]}" --cpus 2 --cpu-time 0.4 -- /plugin/bad spin 2
expect 'a child uses the CPU time' outcome=cpu-time-exceeded -- "${plugin[@]}" --cpu-time 0.2 -- sh -c '/plugin/bad spin 1; true'
expect 'sleep uses no CPU time' outcome=exited exit=0 -- --cpu-time 0.2 -- sleep 0.5
# Since Linux 6.8 the kernel says which process it took.
victim() {
    if [ "$(printf '6.8\n%s\n' "$(uname -r)" | sort -V | head -1)" = 6.8 ]; then
        printf 'oomVictims.0.program=bad oomVictims.0.pid=%d' "$1"
    else
        printf 'oomVictims.#=0'
    fi
}
# shellcheck disable=SC2046 # one or two words
expect 'memory hog' outcome=memory-exceeded exit=137 'usage.peakMemoryBytes>30000000' 'oomKills<100' $(victim 2) -- "${plugin[@]}" --memory 32M -- /plugin/bad hog
expect 'huge static array' outcome=memory-exceeded -- "${plugin[@]}" --memory 64M -- /plugin/bad huge-static
# shellcheck disable=SC2046
expect 'a child is the hog' outcome=memory-exceeded 'usage.wallMs<4000' $(victim 3) -- "${plugin[@]}" --memory 32M -- /plugin/bad child-hog
expect 'infinite output' outcome=output-exceeded stdout.truncated=true stdout.kept=100000 exit=137 -- "${plugin[@]}" --output-limit 100000 -- /plugin/bad flood
expect 'a denial ends the job' outcome=syscall-denied exit=137 denials.0.syscall=unshare -- --on-violation kill -- unshare -r true
expect 'a denial fails the call' outcome=exited denials.0.syscall=unshare denials.0.answer=EPERM -- -- unshare -r true
expect 'a program that is not there' outcome=setup-failed error.step=exec error.errno=ENOENT exitCode=null signal=null exit=125 -- -- /no/such/program
expect 'a directory that is not there' outcome=setup-failed error.step=workdir -- --workdir /nowhere -- true
expect 'the set-up does not fit' outcome=setup-failed error.step=memory-limit exit=125 -- --plugin "$launcher" --memory 512K -- /plugin/launcher --version

# Cancelling: the signal arrives while the job runs (it says so on its standard output).
mkfifo "$work/began"
"$launcher" run --result "$work/result" -- sh -c 'echo began; (sleep 1000 &); sleep 1000' >"$work/began" 2>/dev/null &
launcher_pid=$!
read -r _ <"$work/began"
kill -TERM "$launcher_pid"
wait "$launcher_pid"
code=$?
check 'SIGTERM cancels' [ "$(member outcome) $code" = 'cancelled 137' ]
check 'cancelling leaves nothing' [ -z "$(left_over)" ]

finish
