"""Makes system calls that the sandbox must refuse, and says what each one got.

Every call has arguments that the kernel itself turns down, so one that gets through does no harm. Exits 0 only when
all were refused with EPERM. Arguments choose among the calls; without any, all are made.
"""

import ctypes
import errno
import sys

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16
NO_SUCH_PROCESS = -1
ALL_FLAGS = ctypes.c_int(-1)

CALLS = {
    "ptrace": lambda: libc.ptrace(PTRACE_ATTACH, NO_SUCH_PROCESS, None, None),  # else ESRCH
    "unshare": lambda: libc.unshare(ALL_FLAGS),  # else EINVAL
    "mount": lambda: libc.mount(None, None, None, 0, None),  # else EFAULT
    "setns": lambda: libc.setns(-1, 0),  # else EBADF
}


def refused(name):
    ctypes.set_errno(0)
    returned = CALLS[name]()
    answer = errno.errorcode.get(ctypes.get_errno(), "0") if returned == -1 else f"success ({returned})"
    print(f"{name}: {answer}", flush=True)
    return answer == "EPERM"


answers = [refused(name) for name in sys.argv[1:] or CALLS]
sys.exit(0 if all(answers) else 1)
