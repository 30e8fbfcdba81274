# shellcheck shell=bash disable=SC2034,SC2154 # the variables are those of tests.sh and expect.sh
# Sourced by tests.sh: where the launcher can and cannot work on a host that has cgroup v2 alone.

neighbour_is_in() { grep -qx "0::$1" "/proc/$neighbour/cgroup"; }

# Controllers cannot be enabled where processes sit: they move to a leaf first, the launcher's and those that it found there.
leaf() {
    from service
    /test/vm/enter service sleep 1000 &
    neighbour=$!
    eventually neighbour_is_in /service
    expect 'a group with processes in it' outcome=exited -- -- true
    check 'a neighbour sits in the leaf now' neighbour_is_in /service/sandbus-supervisor
    check 'the group gives its controllers on' grep -qx 'cpu memory pids' /sys/fs/cgroup/service/cgroup.subtree_control
    from service/sandbus-supervisor
    while_it_runs look_above_leaf -- sh -c 'echo began; read -r _'
    check 'a launcher that starts in the leaf works' [ "$(member outcome)" = exited ]
    kill "$neighbour"
    wait "$neighbour"
    group=service
    check 'nothing is left around the leaf' group_is_empty
}
look_above_leaf() { check 'its jobs are beside the leaf' [ -d "$(echo "/sys/fs/cgroup/service/sandbus-job-$launcher_pid-"*)" ]; }

two_at_once() {
    local first second
    from service
    "$launcher" run --result "$work/first" -- true &
    first=$!
    "$launcher" run --result "$work/second" -- true &
    second=$!
    check 'two launchers start at once in a new group' wait "$first"
    check 'and both work' wait "$second"
    check 'nothing is left of the two' group_is_empty
}

root_group() {
    from .
    expect 'the root group' outcome=exited -- -- true
    check 'the root group has no job left' [ -z "$(find /sys/fs/cgroup -name 'sandbus-job-*')" ]
}

# Mounts as containers have them.
containers() {
    from service 'unshare -m' '/test/vm/view bound service'
    expect 'a container in the cgroup namespace of the host' outcome=exited -- -- true
    check 'nothing is left in its group' group_is_empty
    from service 'unshare -m' '/usr/bin/unshare -C /test/vm/view namespace service'
    expect 'a container in a cgroup namespace of its own' outcome=exited -- -- true
    check 'nothing is left in its namespace' group_is_empty
}

undelegated=(outcome=setup-failed exit=125 error.step=cgroup-delegation 'error.mend=*systemd-run*Delegate=yes*')

threaded() {
    from service
    mkdir /sys/fs/cgroup/service
    echo threaded >/sys/fs/cgroup/service/cgroup.type
    expect 'a threaded group has no memory to give' "${undelegated[@]}" -- -- true
    check 'nothing is left in the threaded group' group_is_empty
}

controller_not_given() {
    mkdir /sys/fs/cgroup/slice
    echo '+memory +pids' >/sys/fs/cgroup/slice/cgroup.subtree_control
    from slice/service
    expect 'a group that was given no cpu controller' "${undelegated[@]}" 'error.message=*cpu*' -- -- true
    check 'nothing is left where no cpu is' group_is_empty
    rmdir /sys/fs/cgroup/slice
}

read_only() {
    from service 'unshare -m' '/test/vm/view read-only service'
    expect 'control groups that cannot be written' outcome=setup-failed error.step=cgroup-delegation error.errno=EROFS 'error.mend=*writ*' -- -- true
    check 'nothing is left where nothing can be written' group_is_empty
}

# The group belongs to root, and the launcher does not.
ordinary_user() {
    from service '' '/usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups'
    chmod 755 "$work"
    touch "$work/result"
    chmod 666 "$work/result"
    expect 'an ordinary user without a delegated group' outcome=setup-failed exit=125 'error.mend=?*' -- -- true
    check 'nothing is left of the ordinary user' group_is_empty
}

leaf
two_at_once
root_group
containers
threaded
controller_not_given
read_only
ordinary_user

# A crash must not start the host's handler of core dumps, which would run as root outside of all sandboxes.
core_handler() {
    local pattern
    pattern=$(cat /proc/sys/kernel/core_pattern)
    printf '#!/usr/bin/sh\necho crash >>/tmp/cores\n' >/tmp/core-handler
    chmod +x /tmp/core-handler
    echo '|/tmp/core-handler %p' >/proc/sys/kernel/core_pattern
    from service
    expect 'a crash' outcome=signaled signal=6 -- -- sh -c 'kill -ABRT $$'
    check 'its core is nobody'\''s business' [ ! -e /tmp/cores ]
    (ulimit -c 0; exec sh -c 'kill -ABRT $$') 2>"$work/stderr"
    check 'outside, a limit of 0 does not keep the handler from starting' eventually [ -s /tmp/cores ]
    echo "$pattern" >/proc/sys/kernel/core_pattern
    check 'nothing is left of the crash' group_is_empty
}
core_handler

# Without root, in a delegated group: the tests of the ordinary host, on this layout.
rootless() {
    group=service
    check 'without root' /test/vm/enter service bash /test/rootless.sh
    check 'nothing is left of the jobs without root' group_is_empty
}
rootless
