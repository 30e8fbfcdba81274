#!/bin/bash
# The generator: what it makes for each architecture, and that a slip in the tables ends the build with the line and the reason.
. "$(dirname "$0")/expect.sh"
allow=$here/../policy/allow.tsv
refuse=$here/../policy/refuse.tsv
generate=$build/generate

digest_of() { # the SHA-256 of the program's bytes, worked out from the header's text
    python3 - "$1" <<'PYTHON'
import hashlib, re, struct, sys
rows = re.findall(r'^    \{0x(\w\w), (\d+), (\d+), 0x(\w{8})\},$', open(sys.argv[1]).read(), re.M)
print(hashlib.sha256(b''.join(struct.pack('<HBBI', int(c, 16), int(t), int(f), int(k, 16)) for c, t, f, k in rows)).hexdigest())
PYTHON
}

"$generate" "$allow" "$refuse" x86_64 >"$work/x86_64.h" 2>"$work/x86_64.log"
check 'x86-64 has every name' [ ! -s "$work/x86_64.log" ]
check 'the digest is that of the bytes' grep -q "\"$(digest_of "$work/x86_64.h")\"" "$work/x86_64.h"
if [ "$(uname -m)" = x86_64 ]; then
    check 'and it is the one that the launcher carries' [ "$("$launcher" syscalls | tail -1)" = "# digest $(digest_of "$work/x86_64.h")" ]
fi
check 'the launcher lists the table' [ "$("$launcher" syscalls | grep -v '^#')" = "$(grep -v '^#' "$allow" | cut -f1)" ]

missing='access alarm arch_prctl chmod chown creat dup2 epoll_create epoll_wait fork getpgrp inotify_init lchown link lstat mkdir mknod open pause pipe poll readlink rename rmdir select stat symlink time unlink vfork'
"$generate" "$allow" "$refuse" aarch64 >"$work/aarch64.h" 2>"$work/aarch64.log"
check 'aarch64 lists the names that it lacks' [ "$(cat "$work/aarch64.log")" = "policy: no number on this architecture: $missing (30 names)" ]
check 'another program, another digest' [ "$(digest_of "$work/aarch64.h")" != "$(digest_of "$work/x86_64.h")" ]

# NAME TABLE SED-SCRIPT WANTED-MESSAGE: the table with that change is refused.
slip() {
    cp "$allow" "$refuse" "$work/"
    sed -i "$3" "$work/$2"
    if "$generate" "$work/allow.tsv" "$work/refuse.tsv" x86_64 >/dev/null 2>"$work/message"; then
        fail "$1: it was taken"
    else
        # shellcheck disable=SC2254 # a pattern
        case $(cat "$work/message") in "$work/$2:"$4) pass ;; *) fail "$1: $(cat "$work/message")" ;; esac
    fi
}

slip 'one name fewer' allow.tsv '/^time\t/d' '0: 214 names, but the policy has 215*'
slip 'a name that nobody knows' allow.tsv 's/^time\t/timed\t/' "*libseccomp knows no system call 'timed'*"
slip 'an order that is none' allow.tsv 's/^time\t/aaa\t/' "*'aaa' must come after 'tgkill'*"
slip 'no reason' allow.tsv 's/^\(time\ttime\t\)[^\t]*/\1/' "*'time': column 3 must say something"
slip 'a rule without an answer' allow.tsv 's/^\(socketpair\t.*\)\tEAFNOSUPPORT\t/\1\t\t/' "*'socketpair': column 6 must say something"
slip 'an answer that is none' allow.tsv 's/EAFNOSUPPORT/ENOCLUE/' "*there is no answer 'ENOCLUE'"
slip 'a rule that cannot be read' allow.tsv 's/arg0 in 1\t/arg0 is 1\t/' "*expected ' in ' or ' not-in ' at ' is 1'"
slip 'an argument that calls do not have' allow.tsv 's/arg2&0x31 in 0/arg6\&0x31 in 0/' '*arguments are arg0 to arg5'
slip 'a value that the mask hides' allow.tsv 's/arg2&0x31 in 0/arg2\&0x31 in 2/' '*a value outside the mask'
slip 'a value of 33 bits' allow.tsv 's/arg2&0x31 in 0/arg2\&0x31 in 0x100000000/' '*at most 32 bits*'
slip 'something after the rule' allow.tsv 's/arg2&0x31 in 0/arg2\&0x31 in 0 nor 1/' "*nothing expected after the rule, but ' nor 1'"
slip 'a call that is allowed and refused' refuse.tsv 's/^tee\t/time\t/' "*'time' (201) is decided already*"
slip 'a call that nobody decides' refuse.tsv '/^tee\t/d' "0: no row decides 'tee' (276)*"
slip 'a wrong number' refuse.tsv 's/\t457$/\t4570/' '*is not a system call number'

finish
