#!/bin/bash
# Devices in the sandbox: nodes made for the test, with the numbers of harmless devices, stand for those of a GPU.
. "$(dirname "$0")/expect.sh"
nodes=/dev/sandbus-test-$$
trap 'rm -rf "$work" "$nodes"' EXIT
mkdir "$nodes" && mknod -m 666 "$nodes/gpu0" c 1 5 && mknod -m 666 "$nodes/gpu1" c 1 9 && mknod -m 600 "$nodes/other" c 1 11
zero=(--device "$nodes/gpu0:r")


# What each runtime does with a node: reads it twice, then tries to write it.
expect 'C' outcome=exited stdout=00 'devices.accesses.0.allowed=2' 'devices.accesses.0.denied=1' devices.accesses.0.device="$nodes/gpu0" -- \
    "${zero[@]}" -- sh -c "for i in 1 2; do head -c 1 $nodes/gpu0 | od -An -tx1 | tr -dc 0 | head -c 1; done; dd if=/dev/null of=$nodes/gpu0 conv=notrunc 2>/dev/null; true"
expect 'Bash' outcome=exited exit=1 'devices.accesses.0.allowed=2' 'devices.accesses.0.denied=1' devices.accesses.0.type=c \
    devices.accesses.0.major=1 devices.accesses.0.minor=5 devices.granted.0="$nodes/gpu0" -- \
    "${zero[@]}" -- bash -c "exec 3<$nodes/gpu0 4<$nodes/gpu0; echo >$nodes/gpu0"
expect 'Python' outcome=exited exit=7 'devices.accesses.0.allowed=2' 'devices.accesses.0.denied=1' -- "${zero[@]}" -- python3 -c "
open('$nodes/gpu0', 'rb', buffering=0).read(1); open('$nodes/gpu0', 'rb', buffering=0)
try: open('$nodes/gpu0', 'wb')
except PermissionError: raise SystemExit(7)"
expect 'two grants' outcome=exited exit=0 devices.granted.1="$nodes/gpu1" devices.accesses.1.allowed=1 devices.accesses.1.denied=0 \
    devices.accesses.0.allowed=0 -- "${zero[@]}" --device "$nodes/gpu1" -- sh -c "exec 3<>$nodes/gpu1"
expect 'a node that was not granted does not exist' outcome=exited stdout='*No such file*' devices.granted.0= -- -- \
    sh -c "cat $nodes/gpu0 2>&1"
expect 'the basics are there, and are no grants' outcome=exited exit=0 devices.granted.0= devices.accesses.0.device=/dev/null \
    devices.accesses.0.allowed=1 devices.accesses.1.device=/dev/zero -- -- bash -c 'exec 3<>/dev/null 4</dev/zero'
expect 'making a node is refused' outcome=exited exit=1 denials.0.rule='no device nodes*' -- -- mknod /tmp/zero c 1 5
expect 'a node that is not there' outcome=setup-failed error.step=devices error.errno=ENOENT 'error.message=*/dev/nothing-here*' -- \
    --device /dev/nothing-here -- true
expect 'what is no device' outcome=setup-failed 'error.message=*not a device node*' -- --device /dev/shm -- true

# Without cgroup2 the controller of version 1 holds the same rules, uncounted. The mount is hidden in a namespace of its own.
without_cgroup2() {
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --propagation private bash -c '
        for point in $(awk "\$3 == \"cgroup2\" { print \$2 }" /proc/mounts); do umount "$point" || exit 99; done
        exec "$@"' bash "$launcher" run --result "$work/result" "$@" >"$work/stdout" 2>"$work/stderr"
    code=$?
}
if grep -q ' cgroup2 ' /proc/mounts && grep -qw devices /proc/self/cgroup; then
    without_cgroup2 "${zero[@]}" -- bash -c "exec 3<$nodes/gpu0 && ! echo 2>/dev/null >$nodes/gpu0"
    check 'version 1 alone holds the rules' [ "$(member outcome) $code $(member sandbox.cgroup)" = 'exited 0 v1' ]
    check 'and says that it cannot count' [ "$(member devices.available) $(member syscalls.available)" = 'false false' ]
fi

finish
