#include "inside.h"

#include "descriptor.h"
#include "kernel.h"
#include "policy.h"
#include "report.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOST_MEND "see: launcher check-host"

/* The supervisor says go for the first time when it has what it needs of this process before that is no longer dumpable, and has
 * mapped subordinate ids, since only newuidmap may. */
bool inside_user_namespace(struct inside *inside, struct fault *fault)
{
    const struct rootless *rootless = inside->rootless;
    if (!rootless->active)
        return true;
    if (!report_await_go(inside->report))
        _exit(125);
    return rootless_has_ids(rootless) || rootless_map_one(rootless, inside->uid, inside->gid, fault);
}

/* By the child rather than by the clone: a network namespace takes long to make, and the supervisor has other things to do. */
bool inside_namespaces(struct inside *inside, struct fault *fault)
{
    unsigned long wanted = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    if (inside->network == NETWORK_OWN)
        wanted |= CLONE_NEWNET;
    if (syscall(SYS_unshare, wanted) < 0)
        return fault_set(fault, errno, inside->rootless->active ? rootless_mend() : HOST_MEND,
                         "cannot have namespaces of its own");
    return true;
}

bool inside_join_cgroups(struct inside *inside, struct fault *fault)
{
    int tasks[REPORT_GROUPS_MAX];
    int count = report_await_groups(inside->report, tasks);
    if (count < 0)
        _exit(125); /* the supervisor is gone */
    if (!inside->born_in_group)
        getrusage(RUSAGE_SELF, &inside->before_joining);
    if (count != inside->group_count + (inside->network == NETWORK_GIVEN))
        return fault_set(fault, 0, "raise the limit of open files (ulimit -n)", "not all of the job's groups arrived");
    if (inside->network == NETWORK_GIVEN) {
        if (kernel_enter_network_namespace(tasks[--count]) < 0)
            return fault_set(fault, errno, HOST_MEND, "cannot enter the job's network namespace");
        descriptor_close(&tasks[count]);
    }
    bool joined = cgroup_join(tasks, (size_t)count, fault);
    while (count > 0)
        descriptor_close(&tasks[--count]);
    return joined;
}

static int by_number(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* Of all that the supervisor has open, the job's own files and those of other jobs, few descriptors stay. */
bool inside_close_descriptors(struct inside *inside, struct fault *fault)
{
    int kept[] = {inside->origin, inside->plugin, inside->report, inside->stdio[0], inside->stdio[1], inside->stdio[2]};
    unsigned next = 0;
    qsort(kept, sizeof kept / sizeof kept[0], sizeof kept[0], by_number);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (kept[i] < 0)
            continue;
        if ((unsigned)kept[i] > next && kernel_close_range(next, (unsigned)kept[i] - 1, 0) < 0)
            return fault_set(fault, errno, "Linux 5.14 or newer is needed", "cannot close inherited descriptors");
        next = (unsigned)kept[i] + 1;
    }
    if (kernel_close_range(next, ~0U, 0) < 0)
        return fault_set(fault, errno, "Linux 5.14 or newer is needed", "cannot close inherited descriptors");
    return true;
}

/* What the launcher's parent ignored or blocked is not the job's business. */
bool inside_signals(struct inside *inside, struct fault *fault)
{
    (void)inside;
    (void)fault;
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        kernel_default_signal(number);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return true;
}

bool inside_new_cgroup_namespace(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (syscall(SYS_unshare, CLONE_NEWCGROUP) < 0)
        return fault_set(fault, errno, HOST_MEND, "cannot have a cgroup namespace");
    return true;
}

bool inside_hostname(struct inside *inside, struct fault *fault)
{
    (void)inside;
    return kernel_sethostname("sandbox") == 0 || fault_set(fault, errno, HOST_MEND, "cannot set the host name");
}

bool inside_loopback(struct inside *inside, struct fault *fault)
{
    return inside->network == NETWORK_HOST || kernel_raise_loopback() == 0 ||
           fault_set(fault, errno, HOST_MEND, "cannot bring loopback up");
}

bool inside_keyring(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (kernel_join_new_keyring() < 0 && errno != ENOSYS)
        return fault_set(fault, errno, HOST_MEND, "cannot have a keyring of its own");
    return true;
}

/* Never RLIMIT_AS: just-in-time compilers and Go reserve address space that they do not use. Core dumps are limited to 1 byte,
 * which is too little for one: 0 would keep a crash from writing a file, but not from starting the host's handler, as root. */
bool inside_resource_limits(struct inside *inside, struct fault *fault)
{
    (void)inside;
    static const struct {
        int resource;
        rlim_t soft, hard;
        const char *name;
    } limits[] = {
        {RLIMIT_CORE, 1, 1, "core"},
        {RLIMIT_NOFILE, 1024, 16384, "open files"},
        {RLIMIT_STACK, 8 << 20, RLIM_INFINITY, "stack"},
        {RLIMIT_MEMLOCK, 8 << 20, 8 << 20, "locked memory"},
        {RLIMIT_MSGQUEUE, 0, 0, "message queues"},
        {RLIMIT_SIGPENDING, 4096, 4096, "pending signals"},
        {RLIMIT_NICE, 0, 0, "nice"},
        {RLIMIT_RTPRIO, 0, 0, "real-time priority"},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit now;
        if (getrlimit(limits[i].resource, &now) < 0)
            return fault_set(fault, errno, HOST_MEND, "cannot read the limit of %s", limits[i].name);
        rlim_t hard = limits[i].hard < now.rlim_max ? limits[i].hard : now.rlim_max;
        struct rlimit wanted = {.rlim_cur = limits[i].soft < hard ? limits[i].soft : hard, .rlim_max = hard};
        if (setrlimit(limits[i].resource, &wanted) < 0)
            return fault_set(fault, errno, HOST_MEND, "cannot limit %s", limits[i].name);
    }
    return true;
}

/* The pipes belong to the job: else it could not open /dev/stdout, which is one of them. */
bool inside_stdio(struct inside *inside, struct fault *fault)
{
    for (int i = 0; i < 3; i++)
        if (fchown(inside->stdio[i], inside->uid, inside->gid) < 0)
            return fault_set(fault, errno, HOST_MEND, "cannot give the job its standard streams");
    return true;
}

bool inside_bounding_set(struct inside *inside, struct fault *fault)
{
    (void)inside;
    unsigned long capability = 0; /* the kernel knows the first that it does not have by EINVAL */
    while (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0)
        capability++;
    if (errno != EINVAL || capability == 0)
        return fault_set(fault, errno, HOST_MEND, "cannot drop capability %lu for good", capability);
    unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                         SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return fault_set(fault, errno, HOST_MEND, "cannot lock the secure bits");
    return true;
}

/* Raw system calls: libc's wrappers would want to tell other threads, of which there are none. */
bool inside_identity(struct inside *inside, struct fault *fault)
{
    unsigned long uid = inside->uid, gid = inside->gid;
    bool has_groups = !inside->rootless->active || rootless_has_ids(inside->rootless);
    if ((has_groups && syscall(SYS_setgroups, 0, NULL) < 0) || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
        syscall(SYS_setresuid, uid, uid, uid) < 0)
        return fault_set(fault, errno, HOST_MEND, "cannot become the job's user %lu", uid);
    umask(022);
    return true;
}

bool inside_capabilities(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (kernel_drop_capabilities() < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return fault_set(fault, errno, HOST_MEND, "cannot drop the capabilities");
    return true;
}

/* Not dumpable: the plugin has the same user id and must not reach PID 1's memory, which holds no filter's listener any
 * more but the way to report. */
bool inside_death_signal(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0, 0, 0) < 0)
        return fault_set(fault, errno, HOST_MEND, "cannot tie the job to the launcher's life");
    return true;
}

bool inside_no_new_privileges(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fault_set(fault, errno, HOST_MEND, "cannot forbid new privileges");
    return true;
}

/* A notified call that only a fatal signal can interrupt is counted once however many signals come (Linux 5.19). */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

bool inside_filter(struct inside *inside, struct fault *fault)
{
    struct sock_fprog program = {.len = policy_program_len, .filter = (struct sock_filter *)policy_program};
    unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    inside->listener = kernel_seccomp_filter(&program, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if (inside->listener < 0 && errno == EINVAL)
        inside->listener = kernel_seccomp_filter(&program, flags);
    if (inside->listener < 0)
        return fault_set(fault, errno,
                         errno == EBUSY ? "start the launcher outside of a program that supervises its system calls"
                                        : HOST_MEND,
                         "the kernel did not take the system call filter");
    return true;
}
