#!/bin/bash
# A million refused calls: every one answered and counted, in fixed memory, and the supervisor keeps its limits and its ears
# open meanwhile.
. "$(dirname "$0")/expect.sh"
attack=(--plugin "$build/test/policy-attack" --plugin-name attack)

# Prints the most memory that the process ever held, in kB, as long as it lives.
follow_memory() {
    local peak=0 now
    while now=$(sed -n 's/^VmHWM:[ \t]*\([0-9]*\) kB/\1/p' "/proc/$1/status" 2>/dev/null) && [ -n "$now" ]; do
        peak=$now
        sleep 0.1
    done
    echo "$peak"
}

"$launcher" run --result "$work/result" --wall 120 "${attack[@]}" -- /plugin/attack flood 1000000 >"$work/stdout" 2>"$work/stderr" &
launcher_pid=$!
peak_kilobytes=$(follow_memory "$launcher_pid")
wait "$launcher_pid"
check 'the program comes to its end' [ "$(tail -1 "$work/stdout")" = alive ]
check 'every denial is counted' [ "$(member denials.0.syscall) $(member denials.0.count)" = 'ptrace 500000' ]
check 'probes of unknown numbers share one record' [ "$(member probes.15.syscall) $(member probes.16.syscall)" = 'syscall_730 unknown' ]
check 'nothing else is in the record' [ -z "$(member denials.1.syscall)$(member probes.17.syscall)" ]
check "memory stays what it was ($peak_kilobytes kB)" [ "$peak_kilobytes" -lt 4096 ]
check 'the counts have them all' [ "$(member syscalls.counts.ptrace)" = 500000 ]

expect 'the wall limit holds in a flood' outcome=wall-time-exceeded 'usage.wallMs<1000' 'denials.0.count>100' -- \
    "${attack[@]}" --wall 0.5 -- /plugin/attack flood 1000000000
expect 'sixteen floods hold up neither a quiet process nor the end' outcome=exited exit=0 stdout=quiet 'usage.wallMs<5000' -- \
    "${attack[@]}" --wall 20 -- bash -c 'for i in {1..16}; do /plugin/attack flood 1000000000 >/dev/null & done; sleep 0.2; echo quiet'

mkfifo "$work/began"
"$launcher" run --result "$work/result" "${attack[@]}" -- bash -c 'echo began; exec /plugin/attack flood 1000000000' >"$work/began" 2>/dev/null &
launcher_pid=$!
read -r _ <"$work/began"
began=$(date +%s%N)
kill -TERM "$launcher_pid"
wait "$launcher_pid"
took_milliseconds=$((($(date +%s%N) - began) / 1000000))
check "cancelling in a flood takes effect" [ "$(member outcome)" = cancelled ]
check "at once ($took_milliseconds ms)" [ "$took_milliseconds" -lt 1000 ]

finish
