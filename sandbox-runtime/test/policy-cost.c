/* What the filter costs a call, without and with it: getppid (no rule: the kernel knows the answer and runs no program), and
 * calls with a rule, for which the program runs. Prints nanoseconds, the best of several rounds. */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "policy.h"

enum { ROUNDS = 20, CALLS = 100000 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double cost(long number, long a, long b)
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_ns();
        for (int i = 0; i < CALLS; i++)
            syscall(number, a, b, 0);
        double each = (now_ns() - begin) / CALLS;
        best = each < best ? each : best;
    }
    return best;
}

static void print_costs(const char *when)
{
    printf("policy-cost: %s: getppid %.0f ns, ioctl %.0f ns, fcntl %.0f ns, prctl %.0f ns\n", when,
           cost(SYS_getppid, 0, 0), cost(SYS_ioctl, -1, FIONREAD), cost(SYS_fcntl, 0, F_GETFD),
           cost(SYS_prctl, PR_GET_DUMPABLE, 0));
}

int main(void)
{
    struct sock_fprog program = {policy_program_len, (struct sock_filter *)policy_program};
    print_costs("no filter  ");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    double begin = now_ns();
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) < 0)
        return 1;
    printf("policy-cost: loading it takes %.0f us\n", (now_ns() - begin) / 1e3);
    print_costs("with filter");
    return 0;
}
