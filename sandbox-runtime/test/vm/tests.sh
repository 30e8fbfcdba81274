#!/bin/bash
# What depends on the layout of control groups, inside the virtual machine: tests.sh v2|v1|hybrid|mixed
# shellcheck source=../expect.sh
. "$(dirname "$0")/../expect.sh"
layout=$1
version=${layout/mixed/hybrid} # as the launcher calls it
plugin=(--plugin "$build/test/misbehave" --plugin-name bad)

# From here on the launcher starts in this group: from GROUP [PROGRAMS BEFORE ENTERING [PROGRAMS AFTER]]
from() {
    group=$1
    printf '#!/bin/sh\nexec %s /test/vm/enter "%s" %s %s/launcher "$@"\n' "${2:-}" "$group" "${3:-}" "$build" >"$work/launcher"
    chmod +x "$work/launcher"
    launcher=$work/launcher
}

group_points() { sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup.*/\1/p' /proc/self/mountinfo; }

# Removes the group that the launcher started in. That fails where anything is left in it but the supervisor's empty leaf.
group_is_empty() {
    local point
    for point in $(group_points); do
        [ ! -d "$point/$group/sandbus-supervisor" ] || rmdir "$point/$group/sandbus-supervisor" || return 1
        [ ! -d "$point/$group" ] || rmdir "$point/$group" || return 1
    done
}

# The running job's file of this name, in whichever hierarchy has it.
job_file() { find /sys/fs/cgroup -path "*/sandbus-job-$launcher_pid-*/$1" 2>/dev/null | head -1; }
job_value() { tr '\n' ';' <"$(job_file "$1")"; }

# Starts a job that prints a line once it is there, calls `look`, and ends the job's standard input.
while_it_runs() { # LOOK OPTIONS -- PROGRAM ARGS
    local look=$1
    shift
    rm -f "$work/go" "$work/began"
    mkfifo "$work/go" "$work/began"
    "$launcher" run --result "$work/result" "$@" <"$work/go" >"$work/began" 2>"$work/stderr" &
    launcher_pid=$!
    exec 3>"$work/go" 4<"$work/began"
    read -r _ <&4
    "$look"
    exec 3>&-
    wait "$launcher_pid"
    code=$?
    exec 4<&-
}

# Waits for a condition: at most ten seconds, and no longer than it takes.
eventually() {
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        if "$@"; then return; fi
        sleep 0.05
    done
    return 1
}

not() { ! "$@"; }

host_controls() {
    "$launcher" check-host --json >"$work/result" 2>"$work/stderr"
    check "check-host finds the host fit" [ "$?" = 0 ]
    check "check-host says $version" [ "$(member cgroup)" = "$version" ]
    check 'check-host knows Landlock' [ "$(member landlockAbi)" -ge 2 ]
    check 'check-host finds every required control' not grep -o '"name":"[^"]*","ok":false,"required":true[^}]*' "$work/result"
}

# On version 1 the launcher, woken by the OOM event, is often quicker than the kernel's OOM killer.
oom_kills=()
[ "$layout" != v2 ] || oom_kills=('oomKills>0')

outcomes() {
    expect 'a job ends' outcome=exited exit=0 stdout=hello "sandbox.cgroup=$version" 'sandbox.landlockAbi>1' -- -- echo hello
    expect 'memory hog' outcome=memory-exceeded exit=137 "${oom_kills[@]}" 'usage.peakMemoryBytes>15000000' 'usage.peakMemoryBytes<16777217' -- "${plugin[@]}" --memory 16M -- /plugin/bad hog
    expect 'a child is the hog, and all of the tree dies' outcome=memory-exceeded exitCode=null signal=9 -- "${plugin[@]}" --memory 16M -- /plugin/bad child-hog
    expect 'throttled until its CPU time is used up' outcome=cpu-time-exceeded exit=137 'usage.throttledMs>50' -- "${plugin[@]}" --cpus 0.5 --cpu-time 0.6 -- /plugin/bad spin 1
    expect 'wall clock' outcome=wall-time-exceeded exit=137 'usage.wallMs>199' -- --wall 0.2 -- sleep 1000
    expect 'a daemon that ignores signals' outcome=exited stdout='parent ends' -- "${plugin[@]}" -- /plugin/bad daemon
    expect 'a stopped child' outcome=exited stdout='child stopped' -- "${plugin[@]}" -- /plugin/bad stopped
}

bomb_is_held() { eventually bomb_hit_its_limit && [ "$(cat "$(job_file pids.current)")" -le 9 ]; }
bomb_hit_its_limit() { ! grep -qx 'max 0' "$(job_file pids.events)"; }
look_at_bomb() {
    check 'the bomb is held at its limit' bomb_is_held
    kill -TERM "$launcher_pid"
}
fork_bomb() {
    while_it_runs look_at_bomb "${plugin[@]}" --pids 8 -- sh -c 'echo began; exec /plugin/bad fork-bomb'
    check 'a bomb that is cancelled is gone' [ "$(member outcome) $(left_over)" = 'cancelled ' ]
}

limits_v2='memory.max=41943040; memory.swap.max=0; memory.oom.group=1; cpu.max=50000 100000; pids.max=8;'
limits_v1='memory.limit_in_bytes=41943040; memory.memsw.limit_in_bytes=41943040; cpu.cfs_quota_us=50000; cpu.cfs_period_us=100000; pids.max=8;'
look_at_limits() {
    local limit limits=$limits_v1
    [ "$layout" != v2 ] || limits=$limits_v2
    while read -r limit; do
        check "limit in force: $limit" [ "$(job_value "${limit%%=*}")" = "${limit#*=}" ]
    done <<<"${limits//; /;$'\n'}"
}
limits() {
    while_it_runs look_at_limits --memory 40M --cpus 0.5 --pids 7 -- sh -c 'echo began; read -r _'
    check 'the job with limits ends by itself' [ "$(member outcome)" = exited ]
}

kill_launcher() { kill -KILL "$launcher_pid"; }
jobs_are_gone() { ! grep -q . "$(job_file cgroup.procs)"; }
death_of_the_launcher() {
    local dead
    while_it_runs kill_launcher "${plugin[@]}" -- sh -c '/plugin/bad daemon; echo began; sleep 1000' 2>"$work/killed"
    dead=$launcher_pid
    check 'the launcher dies, and its jobs with it' eventually jobs_are_gone
    expect 'the next one starts all the same' outcome=exited -- -- true
    check 'and removes what the dead one left' [ -z "$(find /sys/fs/cgroup -name "sandbus-job-$dead-*")" ]
}

# The outer group's limit, not the job's, ends the hog.
outer_limit() {
    local file
    from outer
    "$launcher" --version >"$work/stdout"
    file=$(find /sys/fs/cgroup -path '*/outer/memory.max' -o -path '*/outer/memory.limit_in_bytes')
    echo 25165824 >"$file"
    expect 'an outer memory limit holds' outcome=memory-exceeded 'usage.peakMemoryBytes<25165825' -- "${plugin[@]}" --memory 256M -- /plugin/bad hog
    check 'the outer limit is as it was' [ "$(cat "$file")" = 25165824 ]
    check 'nothing is left in the outer group' group_is_empty
}

# A node with the numbers of /dev/zero stands for a GPU.
devices() {
    local counted='devices.available=true'
    [ "$layout" != v1 ] || counted='devices.available=false'
    mknod -m 666 /dev/nvidia0 c 1 5
    expect 'a granted device opens' exit=0 "$counted" -- --device /dev/nvidia0:r -- dd if=/dev/nvidia0 of=/tmp/x bs=1 count=1
    if [ "$layout" != v1 ]; then
        check 'and the open is counted' [ "$(member devices.accesses.0.device) $(member devices.accesses.0.allowed)" = '/dev/nvidia0 1' ]
    fi
    expect 'a device granted for reading is not written' exit=1 'stderr=*not permitted*' -- --device /dev/nvidia0:r -- sh -c ': >/dev/nvidia0'
    if [ "$layout" != v1 ]; then
        check 'and the refusal is counted' [ "$(member devices.accesses.0.allowed) $(member devices.accesses.0.denied)" = '0 1' ]
    fi
    expect 'a device not granted is not there' exit=1 'stderr=*no such file*' -- -- sh -c ': </dev/nvidia0'
    rm /dev/nvidia0
}

accounting() {
    if [ "$layout" = v1 ]; then
        expect 'without cgroup2 calls are not counted, and the record says so' syscalls.available=false 'syscalls.reason=?*' 'executions.reason=?*' -- -- true
    else
        expect 'calls and executions are counted' syscalls.available=true 'syscalls.counts.execve=1' executions.entries.0.path=/usr/bin/true -- -- true
    fi
}

# Where only controllers that threads may share are given on, the kernel lets a process into the group once more, and then
# lets none into the groups below it.
back_in_the_group() {
    printf '#!/bin/sh\necho $$ >/sys/fs/cgroup/unified/%s/cgroup.procs\nexec %s/launcher "$@"\n' "$group" "$build" >"$work/launcher"
    expect 'a launcher that was put back into the group' outcome=setup-failed error.step=cgroup-delegation 'error.mend=?*' -- -- true
    from "$group"
    expect 'a launcher that was not' outcome=exited -- -- true
}

mount_count=$(wc -l </proc/self/mountinfo)
from service
host_controls
outcomes
fork_bomb
limits
death_of_the_launcher
devices
accounting
[ "$layout" != mixed ] || back_in_the_group
check 'nothing is left in the launcher'\''s group' group_is_empty
outer_limit
if [ "$layout" = v2 ]; then
    . "$here/tests-v2.sh"
fi
check 'no mount is left' [ "$(wc -l </proc/self/mountinfo)" = "$mount_count" ]
finish
