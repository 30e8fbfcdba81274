#include "cgroup.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOB_PREFIX "sandbus-job-"

void cgroup_job_init(struct cgroup_job *job, const struct cgroup_host *host)
{
    *job = (struct cgroup_job){.host = host, .oom_event = -1};
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++)
        job->groups[i] = (struct cgroup_group){.dir = -1, .tasks = -1};
}

/* Makes and locks one group. The shared lock on the parent keeps a cleaning launcher out in between. */
static bool create_group(struct cgroup_job *job, size_t index)
{
    const struct cgroup_hierarchy *own = &job->host->hierarchies[index];
    struct cgroup_group *group = &job->groups[index];
    while (flock(own->dir, LOCK_SH) < 0)
        if (errno != EINTR)
            return false;
    bool made = mkdirat(own->dir, job->name, 0755) == 0;
    if (made) {
        group->dir = openat(own->dir, job->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        made = group->dir >= 0 && flock(group->dir, LOCK_EX | LOCK_NB) == 0;
    }
    int saved = errno;
    flock(own->dir, LOCK_UN);
    errno = saved;
    if (made && !own->unified)
        group->tasks = openat(group->dir, "tasks", O_WRONLY | O_CLOEXEC);
    return made && (own->unified || group->tasks >= 0);
}

/* Takes a name that is free in every hierarchy: another launcher with this pid may live in another PID namespace. */
static bool create_all(struct cgroup_job *job, size_t *failed)
{
    static unsigned serial;
    for (int tries = 0; tries < 100; tries++) {
        snprintf(job->name, sizeof job->name, JOB_PREFIX "%ld-%u", (long)getpid(), serial++);
        size_t made = 0;
        while (made < job->host->count && create_group(job, made))
            made++;
        if (made == job->host->count)
            return true;
        int saved = errno;
        *failed = made;
        cgroup_job_remove(job);
        errno = saved;
        if (saved != EEXIST)
            return false;
    }
    return false;
}

bool cgroup_job_create(struct cgroup_job *job, struct fault *fault)
{
    size_t failed = 0;
    if (create_all(job, &failed))
        return true;
    const struct cgroup_hierarchy *own = &job->host->hierarchies[failed];
    const char *mend = errno == EROFS ? CGROUP_READ_ONLY_MEND
                       : own->unified ? CGROUP_DELEGATION_MEND
                                      : "run as root; or boot with systemd.unified_cgroup_hierarchy=1, since version 1 "
                                        "is "
                                        "not delegated; or let root make a group in each hierarchy and give it to you";
    if (errno == EACCES || errno == EPERM)
        fault_name_step(fault, "cgroup-delegation");
    return fault_set(fault, errno, mend, "cannot make a group for the job below %s", own->path);
}

int cgroup_job_unified(const struct cgroup_job *job)
{
    return cgroup_host_unified(job->host) ? job->groups[0].dir : -1;
}

uint64_t cgroup_job_number(const struct cgroup_job *job)
{
    struct stat status;
    return fstat(job->groups[0].dir, &status) == 0 ? status.st_ino : 0;
}

bool cgroup_job_join(const struct cgroup_job *job, struct fault *fault)
{
    for (size_t i = 0; i < job->host->count; i++)
        if (job->groups[i].tasks >= 0 && write(job->groups[i].tasks, "0", 1) != 1)
            return fault_set(fault, errno, "see: launcher check-host", "cannot join the job's group below %s",
                             job->host->hierarchies[i].path);
    return true;
}

bool cgroup_job_kill(const struct cgroup_job *job)
{
    int unified = cgroup_job_unified(job);
    return unified >= 0 && descriptor_write_text(unified, "cgroup.kill", "1");
}

bool cgroup_job_remove(struct cgroup_job *job)
{
    bool all = true;
    for (size_t i = 0; i < job->host->count; i++) {
        struct cgroup_group *group = &job->groups[i];
        if (group->dir < 0)
            continue;
        if (unlinkat(job->host->hierarchies[i].dir, job->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
            all = false;
            continue;
        }
        descriptor_close(&group->dir);
        descriptor_close(&group->tasks);
    }
    if (all)
        descriptor_close(&job->oom_event);
    return all;
}
