#!/bin/bash
# Attacks on the filter, in a real sandbox: what the program got, what the policy says and what the record says must agree.
. "$(dirname "$0")/expect.sh"
attack=(--plugin "$build/test/policy-attack" --plugin-name attack)

# Reads the lines of policy-attack and the result; prints each disagreement.
agrees() {
    python3 - "$work/stdout" "$work/result" "$@" <<'PYTHON'
import json, sys
lines = [line.split() for line in open(sys.argv[1])]
result = json.load(open(sys.argv[2]))
mode = sys.argv[3]
wrong = []
rows = result['denials'] + result['probes']
recorded = {row['number']: row for row in rows if row['number'] >= 0}
refused = {}
if lines[-1] != ['alive']:
    wrong.append(f'the program did not come to its end: {lines[-1]}')
for number, name, wanted, got in lines[:-1]:
    # The kernel itself lets uretprobe and uprobe pass every filter, and refuses them outside its own probes.
    if wanted == 'allowed' or (number, got) in (('335', 'signal-4'), ('336', 'ENXIO')):
        continue
    if got != wanted:
        wrong.append(f'{number} {name}: wanted {wanted}, got {got}')
    if name != 'clone3':  # the filter's own answer, which nobody sees
        refused.setdefault((int(number), name), []).append(wanted)
for (number, name), answers in refused.items():
    row = recorded.get(number)
    if row is None:
        if name != 'unknown':
            wrong.append(f'{number} {name} is not in the record')
        continue
    if (row['count'], row['answer']) != (len(answers), answers[0]) or row['program'] != '/plugin/attack':
        wrong.append(f'{number} {name}: {len(answers)} times {answers[0]}, but the record says {row}')
    if mode == 'numbers' and name != 'unknown' and row['args'] != ['0xffffffffffffffff'] * 6:
        wrong.append(f'{number} {name}: arguments {row["args"]}')
for number in recorded.keys() - {number for number, _ in refused}:
    wrong.append(f'the record has {recorded[number]}, which was not tried or is allowed')
for row in result['denials']:
    if row['answer'] in ('ENOSYS', '0'):
        wrong.append(f'a probe among the denials: {row}')
for row in result['probes']:
    if row['answer'] not in ('ENOSYS', '0'):
        wrong.append(f'a denial among the probes: {row}')
samples = [row for row in result['probes'] if row['syscall'].startswith('syscall_')]
unknown = sum(len(answers) for (_, name), answers in refused.items() if name == 'unknown')
if unknown > 16 and len(samples) != 16:
    wrong.append(f'{len(samples)} samples of unknown numbers')
if sum(row['count'] for row in rows) != sum(map(len, refused.values())):
    wrong.append('the counts of the record do not add up to the refused calls')
if mode == 'numbers' and len(lines) != 602:
    wrong.append(f'{len(lines)} lines')
if mode == 'numbers' and sum(line[2] == 'allowed' for line in lines[:-1]) != 215:
    wrong.append('not 215 allowed numbers')
print('\n'.join(wrong[:20]))
sys.exit(bool(wrong))
PYTHON
}

expect 'every number' outcome=exited exit=0 -- "${attack[@]}" --wall 60 -- /plugin/attack numbers
check 'every number gets what the policy says' agrees numbers
expect 'every rule' outcome=exited exit=0 -- "${attack[@]}" --wall 60 -- /plugin/attack rules
check 'every rule holds from both sides, whatever the upper halves' agrees rules

expect 'x32 ends the tree' outcome=syscall-denied exit=137 stdout= denials.0.rule='no x32 calls' denials.0.syscall=getpid \
    denials.0.program=/plugin/attack denials.0.answer=killed -- "${attack[@]}" -- /plugin/attack x32
expect 'int 0x80 ends the tree' outcome=syscall-denied exit=137 stdout= denials.0.rule='no calls of another architecture' \
    denials.0.syscall=getpid denials.0.number=20 -- "${attack[@]}" -- /plugin/attack int80
expect 'so does that of a child' outcome=syscall-denied exit=137 stdout= -- "${attack[@]}" -- sh -c '/plugin/attack int80; echo on'
expect 'kill at the first denial' outcome=syscall-denied denials.0.syscall=ptrace denials.0.count=1 probes.0.count=1 -- \
    "${attack[@]}" --on-violation kill -- /plugin/attack flood 2
expect 'never at a probe' outcome=exited exit=0 probes.0.count=1 denials.0.count= -- \
    "${attack[@]}" --on-violation kill -- /plugin/attack flood 1

finish
