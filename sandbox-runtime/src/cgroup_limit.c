#include "cgroup.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CPU_PERIOD_US = 100000 };

static int controller_dir(const struct cgroup_job *job, enum cgroup_controller controller)
{
    return job->groups[job->host->controller[controller]].dir;
}

static bool on_unified(const struct cgroup_job *job, enum cgroup_controller controller)
{
    return job->host->hierarchies[job->host->controller[controller]].unified;
}

/* Writes a limit, reads it back, and insists that the kernel took it. It may round down by less than `slack`. */
static bool set_number(int dir, const char *file, uint64_t value, uint64_t slack, struct fault *fault)
{
    char text[64];
    snprintf(text, sizeof text, "%" PRIu64, value);
    OWNED_FD int control = openat(dir, file, O_RDWR | O_CLOEXEC);
    if (control < 0 || !descriptor_write_all(control, text, strlen(text)))
        return fault_set(fault, errno,
                         errno == EBUSY ? "raise this limit: the set-up itself takes more"
                                        : "choose another limit, or see: launcher check-host",
                         "the kernel refused %s as %s", text, file);
    ssize_t length = pread(control, text, sizeof text - 1, 0);
    if (length < 0)
        return fault_set(fault, errno, "see: launcher check-host", "cannot read %s back", file);
    text[length] = 0;
    uint64_t taken = strtoull(text, NULL, 10);
    if (taken > value || value - taken > slack || text[0] < '0' || text[0] > '9')
        return fault_set(fault, 0, "choose a limit that this host can enforce", "%s should be %" PRIu64 " and reads %s",
                         file, value, strtok(text, "\n"));
    return true;
}

/* Whether the host has swap in use, which a memory limit alone would not stop. */
static bool swap_is_on(void)
{
    char swaps[1024];
    ssize_t length = descriptor_read_text(AT_FDCWD, "/proc/swaps", swaps, sizeof swaps);
    char *first_line = length > 0 ? strchr(swaps, '\n') : NULL;
    return first_line && first_line[1];
}

/* An eventfd that the kernel signals at each OOM of the version 1 group. One is enough, however often the limit changes. */
static bool watch_oom(struct cgroup_job *job, int dir, struct fault *fault)
{
    if (job->oom_event >= 0)
        return true;
    OWNED_FD int control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    char registration[64];
    job->oom_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(registration, sizeof registration, "%d %d", job->oom_event, control);
    if (control < 0 || job->oom_event < 0 || !descriptor_write_text(dir, "cgroup.event_control", registration))
        return fault_set(fault, errno, "see: launcher check-host", "cannot have OOM events of the memory group");
    return true;
}

/* The kernel refuses to have the limit of memory above that of memory and swap for a moment: a new limit goes into the roomier
 * one first. */
static bool limit_memory_v1(struct cgroup_job *job, int dir, uint64_t bytes, uint64_t slack, struct fault *fault)
{
    static const char memory[] = "memory.limit_in_bytes", with_swap[] = "memory.memsw.limit_in_bytes";
    char text[64];
    bool has_swap_limit = descriptor_read_text(dir, with_swap, text, sizeof text) >= 0;
    bool grows = has_swap_limit && strtoull(text, NULL, 10) < bytes;
    if (grows && !set_number(dir, with_swap, bytes, slack, fault))
        return false;
    if (!set_number(dir, memory, bytes, slack, fault))
        return false;
    if (has_swap_limit && !grows && !set_number(dir, with_swap, bytes, slack, fault))
        return false;
    if (!has_swap_limit && swap_is_on())
        return fault_set(fault, 0, "boot with swapaccount=1, turn swap off (swapoff -a), or use cgroup v2",
                         "swap is on and this kernel does not count it: the memory limit would not hold");
    return watch_oom(job, dir, fault);
}

static bool limit_memory_v2(int dir, uint64_t bytes, uint64_t slack, struct fault *fault)
{
    if (!set_number(dir, "memory.max", bytes, slack, fault))
        return false;
    bool has_swap_limit = faccessat(dir, "memory.swap.max", F_OK, 0) == 0;
    if (has_swap_limit && !set_number(dir, "memory.swap.max", 0, 0, fault))
        return false;
    if (!has_swap_limit && swap_is_on())
        return fault_set(fault, 0, "boot with swapaccount=1 or turn swap off (swapoff -a)",
                         "swap is on and this kernel does not count it: the memory limit would not hold");
    return set_number(dir, "memory.oom.group", 1, 0, fault);
}

bool cgroup_limit_memory(struct cgroup_job *job, uint64_t bytes, struct fault *fault)
{
    int dir = controller_dir(job, CGROUP_MEMORY);
    uint64_t slack = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    if (on_unified(job, CGROUP_MEMORY))
        return limit_memory_v2(dir, bytes, slack, fault);
    return limit_memory_v1(job, dir, bytes, slack, fault);
}

bool cgroup_limit_cpu(struct cgroup_job *job, uint64_t thousandths, struct fault *fault)
{
    int dir = controller_dir(job, CGROUP_CPU);
    uint64_t quota_us = thousandths * CPU_PERIOD_US / 1000;
    if (!on_unified(job, CGROUP_CPU))
        return set_number(dir, "cpu.cfs_period_us", CPU_PERIOD_US, 0, fault) &&
               set_number(dir, "cpu.cfs_quota_us", quota_us, 0, fault);
    char wanted[64], taken[64];
    snprintf(wanted, sizeof wanted, "%" PRIu64 " %d\n", quota_us, CPU_PERIOD_US);
    if (!descriptor_write_text(dir, "cpu.max", wanted))
        return fault_set(fault, errno, "see: launcher check-host", "the kernel refused the CPU quota");
    if (descriptor_read_text(dir, "cpu.max", taken, sizeof taken) < 0 || strcmp(wanted, taken) != 0)
        return fault_set(fault, 0, "choose a limit that this host can enforce", "cpu.max did not take the quota");
    return true;
}

bool cgroup_limit_processes(struct cgroup_job *job, uint64_t processes, struct fault *fault)
{
    /* The job's init is in the group too and is not the job's business. */
    return set_number(controller_dir(job, CGROUP_PIDS), "pids.max", processes + 1, 0, fault);
}
