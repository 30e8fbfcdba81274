#!/bin/bash
# Whatever processes a job makes, the end of the job is the end of all of them, at once.
. "$(dirname "$0")/expect.sh"
bad=$build/test/misbehave
plugin=(--plugin "$bad" --plugin-name bad)

# expect itself looks for processes that outlive the job.
expect 'a daemon' outcome=exited exitCode=0 'stdout=parent ends' 'usage.wallMs<2000' -- "${plugin[@]}" -- /plugin/bad daemon
expect 'background children that hold the streams' outcome=exited 'usage.wallMs<2000' -- -- sh -c '(sleep 1000 &) & setsid sleep 1000 & exit 0'
expect 'a stopped child' outcome=exited 'stdout=child stopped' 'usage.wallMs<2000' -- "${plugin[@]}" -- /plugin/bad stopped
expect 'a time limit kills children too' outcome=wall-time-exceeded 'usage.wallMs<2000' -- --wall 0.3 -- sh -c 'sleep 1000 & sleep 1000 & wait'
expect 'streams closed by the job' outcome=wall-time-exceeded -- "${plugin[@]}" --wall 0.3 -- /plugin/bad close-streams
expect 'a fork bomb' outcome=wall-time-exceeded 'usage.peakProcesses=64' 'timings.end-kill<3000000' -- "${plugin[@]}" --pids 64 --wall 1 -- /plugin/bad fork-bomb
expect 'the next job runs normally' outcome=exited stdout=fine -- -- echo fine
expect 'three thousand orphans leave no zombies' outcome=exited exitCode=0 'usage.peakProcesses<1000' -- "${plugin[@]}" --pids 1000 -- /plugin/bad orphans 3000
expect 'the process limit is the whole job' outcome=exited 'usage.peakProcesses=4' -- --pids 4 -- sh -c 'for i in 1 2 3 4 5 6; do sleep 0.2 & done 2>/dev/null; wait'

# The launcher dies by SIGKILL: its jobs die with it, and the next start removes the groups.
mkfifo "$work/began"
"$launcher" run --result "$work/result" -- sh -c 'echo began; setsid sleep 7531 & exec sleep 7531' >"$work/began" 2>/dev/null &
launcher_pid=$!
exec 7<"$work/began"
read -r _ <&7
inside() { grep -l -z '^7531$' /proc/[0-9]*/cmdline 2>/dev/null; }
check 'the job runs before the launcher is killed' [ -n "$(inside)" ]
{
    kill -KILL "$launcher_pid"
    wait "$launcher_pid"
} 2>/dev/null
for _ in $(seq 100); do
    [ -z "$(inside)" ] && break
    sleep 0.02
done
check 'SIGKILL of the launcher leaves no process' [ -z "$(inside)" ]
"$launcher" run -- true 2>/dev/null
check 'and the next start removes its groups' [ -z "$(find /sys/fs/cgroup -maxdepth 6 -name "sandbus-job-$launcher_pid-*")" ]

# Whoever reads the result is gone: nobody wants the job any more.
rm "$work/began"
mkfifo "$work/began" "$work/reader"
"$launcher" run --result fd:8 -- sh -c 'echo began; sleep 1000' 8>"$work/reader" >"$work/began" 2>/dev/null &
launcher_pid=$!
exec 9<"$work/reader"
read -r _ <"$work/began"
exec 9<&-
wait "$launcher_pid"
code=$?
check 'a dead reader of the result ends the job' [ "$code" = 125 ] || [ "$code" = 137 ]

finish
