#include "host_controls.h"

#include "clock.h"
#include "descriptor.h"
#include "kernel.h"
#include "options.h"
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static bool say(struct host_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->detail, sizeof finding->detail, format, arguments);
    va_end(arguments);
    return true;
}

void host_open(struct host *host)
{
    *host = (struct host){.supervisor = {.loop = {.epoll = -1}}};
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

void host_close(struct host *host)
{
    if (host->group.host)
        cgroup_job_remove(&host->group);
    if (host->supervisor.loop.epoll >= 0)
        supervisor_close(&host->supervisor);
    else
        cgroup_host_close(&host->supervisor.cgroups);
}

static bool kernel_version(struct host *host, struct host_finding *finding)
{
    (void)host;
    struct utsname name;
    unsigned major = 0, minor = 0;
    uname(&name);
    sscanf(name.release, "%u.%u", &major, &minor);
    if (major > 5 || (major == 5 && minor >= 14))
        return say(finding, "Linux %s", name.release);
    return fault_set(&finding->fault, 0, "use Linux 5.14 or newer (cgroup.kill, mount_setattr, clone3 into a cgroup)",
                     "Linux %s is too old", name.release);
}

static bool privileges(struct host *host, struct host_finding *finding)
{
    struct rootless *rootless = &host->supervisor.rootless;
    rootless_open(rootless);
    if (!rootless->active)
        return say(finding, "root");
    if (rootless_has_ids(rootless))
        return say(finding, "user %u, whose jobs get user ids from %u on", (unsigned)rootless->uid,
                   rootless->uids.first);
    return say(finding,
               "user %u, who all jobs are too: newuidmap (package uidmap) and a line in /etc/subuid and /etc/subgid "
               "give "
               "them ids of their own",
               (unsigned)rootless->uid);
}

static bool outer_seccomp(struct host *host, struct host_finding *finding)
{
    (void)host;
    return supervisor_check_outer_filter(&finding->fault) && say(finding, "no filter above the launcher");
}

static bool proc_is_own(struct host *host, struct host_finding *finding)
{
    (void)host;
    struct stat status;
    if (stat("/proc/self", &status) == 0)
        return say(finding, "mounted");
    return fault_set(&finding->fault, errno, "mount -t proc proc /proc", "no usable /proc");
}

/* Runs `part` in a child; what it exits with is an errno, 0 for success. */
static int in_child(unsigned long flags, int (*part)(void))
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    int status;
    pid_t child = kernel_clone3(&args);
    if (child == 0)
        _exit(part());
    if (child < 0)
        return errno;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
}

/* Also where the namespace can be made, a security module may leave it without rights. */
static int change_mounts(void)
{
    return kernel_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? errno : 0;
}

static bool namespaces(struct host *host, struct host_finding *finding)
{
    bool rootless = host->supervisor.rootless.active;
    unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP;
    int error = in_child(rootless ? flags | CLONE_NEWUSER : flags, change_mounts);
    if (!error)
        return say(finding, "%smount, pid, ipc, uts, network, cgroup", rootless ? "user, " : "");
    if (rootless)
        return fault_set(&finding->fault, error, rootless_mend(), "cannot make a user namespace with rights in it");
    return fault_set(&finding->fault, error,
                     "run as root; in a container give it CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN --security-opt "
                     "apparmor=unconfined)",
                     "cannot make namespaces");
}

static int load_filter(void)
{
    struct sock_fprog program = {.len = policy_program_len, .filter = (struct sock_filter *)policy_program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        kernel_seccomp_filter(&program, SECCOMP_FILTER_FLAG_NEW_LISTENER) < 0)
        return errno;
    return 0;
}

static bool filter(struct host *host, struct host_finding *finding)
{
    (void)host;
    int error = in_child(0, load_filter);
    if (!error)
        return say(finding, "%zu system calls allowed, digest %.12s", policy_allowed_count(), policy_digest_hex);
    return fault_set(&finding->fault, error,
                     "use a kernel with CONFIG_SECCOMP_FILTER and no supervisor of system calls above the launcher",
                     "the system call filter cannot be loaded");
}

static bool landlock(struct host *host, struct host_finding *finding)
{
    (void)host;
    int abi = inside_landlock_abi();
    if (abi)
        return say(finding, "ABI %d%s", abi, abi < 6 ? ", too old to keep signals and abstract sockets inside" : "");
    return fault_set(&finding->fault, 0, "use Linux 5.19 or newer with landlock in its list of security modules (lsm=)",
                     "none that jobs can use; mounts alone keep them from writing");
}

static bool cgroups(struct host *host, struct host_finding *finding)
{
    if (!cgroup_host_open(&host->supervisor.cgroups, &finding->fault))
        return false;
    cgroup_job_init(&host->group, &host->supervisor.cgroups);
    if (!cgroup_job_create(&host->group, &finding->fault) || !cgroup_job_complete(&host->group, &finding->fault)) {
        cgroup_job_remove(&host->group);
        host->group.host = NULL;
        return false;
    }
    return say(finding, "%s, below %s", cgroup_host_version(&host->supervisor.cgroups),
               host->supervisor.cgroups.hierarchies[0].path);
}

static bool needs_group(struct host *host, struct host_finding *finding)
{
    return host->group.host ||
           fault_set(&finding->fault, 0, "mend cgroup first", "not looked at: there is no group to try it on");
}

static bool memory_limit(struct host *host, struct host_finding *finding)
{
    return needs_group(host, finding) && cgroup_limit_memory(&host->group, 64 << 20, &finding->fault) &&
           say(finding, "set and read back, without swap");
}

static bool cpu_limit(struct host *host, struct host_finding *finding)
{
    return needs_group(host, finding) && cgroup_limit_cpu(&host->group, 500, &finding->fault) &&
           say(finding, "set and read back");
}

static bool process_limit(struct host *host, struct host_finding *finding)
{
    return needs_group(host, finding) && cgroup_limit_processes(&host->group, 16, &finding->fault) &&
           say(finding, "set and read back");
}

static bool tree_kill(struct host *host, struct host_finding *finding)
{
    if (!needs_group(host, finding))
        return false;
    if (cgroup_job_kill(&host->group))
        return say(finding, "cgroup.kill");
    return fault_set(&finding->fault, 0, "mount cgroup2 (Linux 5.14 or newer)",
                     "no cgroup.kill: a large tree takes longer to end, by its PID namespace");
}

static bool device_controller(struct host *host, struct host_finding *finding)
{
    if (!needs_group(host, finding))
        return false;
    if (host->supervisor.rootless.active)
        return say(finding, "without root by absence: only granted devices exist, and their use is not counted");
    if (!accounts_open(&host->supervisor, 1, &finding->fault))
        return false;
    bool counts = host->supervisor.devices != NULL;
    accounts_close(&host->supervisor);
    return say(finding, "%s",
               counts ? "BPF on cgroup2: opens are counted" : "version 1: opens are limited and cannot be counted");
}

static bool accounting(struct host *host, struct host_finding *finding)
{
    (void)host;
    struct counts *counts = counts_load(1);
    const char *reason = counts_unavailable(counts);
    bool ok = reason ? fault_set(&finding->fault, 0,
                                 "start the launcher with CAP_BPF and CAP_PERFMON, on a kernel with BTF", "%s", reason)
                     : say(finding, "system calls and executions are counted");
    counts_unload(counts);
    return ok;
}

/* A sink that takes everything and keeps nothing. */
static ssize_t swallow(struct sink *sink, const void *bytes, size_t length)
{
    (void)sink;
    (void)bytes;
    return (ssize_t)length;
}

static bool run_itself(struct host *host, struct job *job, struct job_spec *spec, struct fault *fault)
{
    static struct sink nowhere = {.put = swallow};
    struct sink *sinks[2] = {&nowhere, &nowhere};
    char *const words[] = {"--plugin", "/proc/self/exe",   "--plugin-name", "launcher",
                           "--",       "/plugin/launcher", "--version"};
    if (!options_init(spec, fault) || !options_parse(spec, sizeof words / sizeof words[0], words, fault))
        return false;
    job_start(job, &host->supervisor, spec, -1, sinks);
    while (job->state != JOB_DONE)
        supervisor_turn(&host->supervisor, LOOP_FOREVER);
    return true;
}

/* All of it together: the launcher itself as the plugin. */
static bool sandbox(struct host *host, struct host_finding *finding)
{
    struct job_spec spec;
    struct job job;
    host_close(host);
    if (!supervisor_open(&host->supervisor, 1, &finding->fault))
        return false;
    bool ran = run_itself(host, &job, &spec, &finding->fault);
    bool well = ran && job.outcome == OUTCOME_EXITED && job.wait_status == 0;
    if (well)
        say(finding, "a job ran, ready in %.1f ms", (double)(job.started_us - job.created_us) / 1000);
    else if (ran && job.outcome == OUTCOME_SETUP_FAILED)
        finding->fault = job.fault;
    else if (ran)
        fault_set(&finding->fault, 0, "report this, with the output of launcher check-host --json",
                  "a job that should exit with 0 ended as %s", outcome_name(job.outcome));
    if (ran)
        job_free(&job);
    job_spec_free(&spec);
    return well;
}

const struct host_control host_controls[] = {
    {"kernel", true, kernel_version},
    {"privileges", true, privileges},
    {"outer-seccomp", true, outer_seccomp},
    {"proc", true, proc_is_own},
    {"namespaces", true, namespaces},
    {"filter", true, filter},
    {"landlock", false, landlock},
    {"cgroup", true, cgroups},
    {"memory-limit", true, memory_limit},
    {"cpu-limit", true, cpu_limit},
    {"process-limit", true, process_limit},
    {"tree-kill", false, tree_kill},
    {"device-controller", true, device_controller},
    {"accounting", false, accounting},
    {"sandbox", true, sandbox},
};

const size_t host_control_count = sizeof host_controls / sizeof host_controls[0];

_Static_assert(sizeof host_controls / sizeof host_controls[0] <= HOST_CONTROLS_MAX, "findings have room for every "
                                                                                    "control");
