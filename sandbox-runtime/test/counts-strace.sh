#!/bin/bash
# The counts against strace, of one and the same run: the whole launcher runs under `strace -f`, and what strace saw of the
# plugin's processes, from the plugin's execve on and without init, must be what the record says, call by call.
. "$(dirname "$0")/expect.sh"

# The kernel's entry hook does not see what the filter answers itself (clone3); strace does.
compare_with_strace() {
    python3 - "$work/trace" "$work/result" <<'PYTHON'
import collections, json, re, sys
seen = collections.Counter()
executed = []
plugin = None  # the process that becomes it
others = set()  # the launcher, init, and what they did before
begun = {}
line_of = re.compile(r'^(\d+) +(?:<\.\.\. )?([a-z_0-9]+)(\(| resumed>)(.*)$')
for line in open(sys.argv[1], errors='replace'):
    match = line_of.match(line)
    if not match:
        continue
    pid, name, kind, rest = match.groups()
    entered = kind == '('
    if plugin is None or pid in others:
        if name == 'execve' and entered:
            begun[pid] = True
        if name == 'execve' and rest.endswith(' = 0') and len(others) >= 2 and plugin is None:
            plugin = pid
            others.discard(pid)
            seen['execve'] += 1
            executed.append(pid)
            continue
        others.add(pid)
        continue
    if name == 'execve' and rest.endswith(' = 0'):
        executed.append(pid)
    if not entered:
        continue
    if name.startswith('syscall_'):
        name = f'syscall_{int(name[8:], 16)}'
    if name != 'clone3':
        seen[name] += 1
result = json.load(open(sys.argv[2]))
counts = collections.Counter(result['syscalls']['counts'])
wrong = [f'{name}: strace saw {seen[name]}, counted {counts[name]}' for name in sorted(seen | counts) if seen[name] != counts[name]]
if sum(counts.values()) != result['syscalls']['total']:
    wrong.append('the total is not the sum')
if len(executed) != len(result['executions']['entries']) + result['executions']['dropped']:
    wrong.append(f'{len(executed)} executions, recorded {len(result["executions"]["entries"])}')
if not counts:
    wrong.append('nothing was counted')
print('\n'.join(wrong))
sys.exit(bool(wrong))
PYTHON
}

counted() { # NAME OPTIONS -- PROGRAM ARGS
    local name=$1
    shift
    strace -f -o "$work/trace" "$launcher" run --result "$work/result" --wall 60 "$@" >"$work/stdout" 2>"$work/stderr" </dev/null
    check "$name runs" [ "$(member outcome)" = exited ]
    check "$name is counted as strace sees it" compare_with_strace
}

if ! command -v strace >/dev/null; then
    echo 'counts-strace: skipped: no strace'
    exit 0
fi
cat >"$work/threads.py" <<'PYTHON'
import os, subprocess, threading, ctypes
threads = [threading.Thread(target=lambda: [os.getppid() for _ in range(500)]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
subprocess.run(['true'])
libc = ctypes.CDLL(None)
libc.ptrace(16, 1, 0, 0)
libc.unshare(0x10000000)
for number in (700, 701, 701): libc.syscall(number)
PYTHON
counted 'a static program' --plugin "$build/test/policy-attack" --plugin-name attack -- /plugin/attack flood 32
counted 'a pipeline' -- bash -c 'for i in 1 2 3; do ls /usr | sort | head -2; done; echo hi | cat; sleep 0.01 & wait'
counted 'threads and refusals' --input threads.py="$work/threads.py" -- python3 /job/threads.py

finish
