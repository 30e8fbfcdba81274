#!/bin/bash
# Many jobs leave nothing behind: no group, mount, process, file or descriptor. So do launchers that die at random moments.
. "$(dirname "$0")/expect.sh"
runs=${RUNS:-500} kills=${KILLS:-100}

groups() { find /sys/fs/cgroup -maxdepth 6 -name "sandbus-job-*" 2>/dev/null; }
own_groups() { groups | grep -c -F -f "$work/pids"; }
mounts() { wc -l </proc/self/mountinfo; }
# What three jobs write into the usual places, looked at where nobody else writes.
# shellcheck disable=SC2016
files() {
    unshare -m sh -c 'for place in /tmp /var/tmp /dev/shm; do mount -t tmpfs none $place; done
        for i in 1 2 3; do "$1" run --result /dev/null -- true; done
        find /tmp /var/tmp /dev/shm -mindepth 1' _ "$launcher"
}

mounts_before=$(mounts)
wrong=0
: >"$work/pids"
for ((i = 0; i < runs; i++)); do
    run_job -- sh -c 'sleep 100 & echo done' </dev/null
    [ "$code $(cat "$work/stdout")" = '0 done' ] || wrong=$((wrong + 1))
    echo "sandbus-job-$launcher_pid-" >>"$work/pids"
done
check "$runs runs are all well (wrong: $wrong)" [ "$wrong" = 0 ]
check 'and leave no group' [ "$(own_groups)" = 0 ]
check 'no mount' [ "$(mounts)" = "$mounts_before" ]
check 'no file' [ -z "$(files)" ]

: >"$work/pids"
for ((i = 0; i < kills; i++)); do
    "$launcher" run --result /dev/null -- sh -c 'setsid sleep 4321 & sleep 4321' </dev/null >/dev/null 2>&1 &
    launcher_pid=$!
    echo "sandbus-job-$launcher_pid-" >>"$work/pids"
    sleep "0.0$((RANDOM % 40 + 10))"
    kill -KILL "$launcher_pid"
    wait "$launcher_pid" 2>/dev/null
done 2>/dev/null
alive() { grep -l -z '^4321$' /proc/[0-9]*/cmdline 2>/dev/null; }
for _ in $(seq 100); do
    [ -z "$(alive)" ] && break
    sleep 0.05
done
check "SIGKILL of the launcher at $kills random moments leaves no process" [ -z "$(alive)" ]
for _ in 1 2 3 4 5; do # another launcher may be making a group at the moment; then this one leaves the cleaning to the next
    "$launcher" run --result /dev/null -- true
    [ "$(own_groups)" = 0 ] && break
done
check 'and the next start leaves no group of theirs' [ "$(own_groups)" = 0 ]
check 'nor is a mount left' [ "$(mounts)" = "$mounts_before" ]

finish
