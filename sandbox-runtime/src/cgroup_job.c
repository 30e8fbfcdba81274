#include "cgroup.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


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

static bool create_or_explain(struct cgroup_job *job, size_t index, struct fault *fault)
{
    if (create_group(job, index))
        return true;
    const struct cgroup_hierarchy *own = &job->host->hierarchies[index];
    const char *mend = errno == EROFS ? CGROUP_READ_ONLY_MEND
                       : own->unified ? CGROUP_DELEGATION_MEND
                                      : "run as root; or boot with systemd.unified_cgroup_hierarchy=1, since version 1 "
                                        "is "
                                        "not delegated; or let root make a group in each hierarchy and give it to you";
    if (errno == EACCES || errno == EPERM)
        fault_name_step(fault, "cgroup-delegation");
    return fault_set(fault, errno, mend, "cannot make a group for the job below %s", own->path);
}

/* The random part is for launchers in other PID namespaces, one of which may have this pid too. */
bool cgroup_job_create(struct cgroup_job *job, struct fault *fault)
{
    static unsigned serial, chance;
    if (!chance && getrandom(&chance, sizeof chance, 0) != sizeof chance)
        return fault_set(fault, errno, "report this", "cannot choose a name for the job's groups");
    snprintf(job->name, sizeof job->name, CGROUP_JOB_PREFIX "%ld-%u-%08x", (long)getpid(), serial++, chance);
    return create_or_explain(job, 0, fault);
}

bool cgroup_job_complete(struct cgroup_job *job, struct fault *fault)
{
    for (size_t i = 1; i < job->host->count; i++)
        if (!create_or_explain(job, i, fault))
            return false;
    return true;
}

size_t cgroup_job_tasks(const struct cgroup_job *job, int tasks[CGROUP_HIERARCHIES])
{
    size_t count = 0;
    for (size_t i = 0; i < job->host->count; i++)
        if (job->groups[i].tasks >= 0)
            tasks[count++] = job->groups[i].tasks;
    return count;
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

bool cgroup_join(const int *tasks, size_t count, struct fault *fault)
{
    for (size_t i = 0; i < count; i++)
        if (write(tasks[i], "0", 1) != 1)
            return fault_set(fault, errno, "see: launcher check-host", "cannot join one of the job's groups");
    return true;
}

bool cgroup_job_kill(const struct cgroup_job *job)
{
    int unified = cgroup_job_unified(job);
    return unified >= 0 && descriptor_write_text(unified, "cgroup.kill", "1");
}

/* The first hierarchy is enough: it is the one that processes enter first. */
bool cgroup_job_is_empty(const struct cgroup_job *job)
{
    char text[256];
    bool unified = cgroup_job_unified(job) >= 0;
    const struct cgroup_group *group = &job->groups[0];
    if (group->dir < 0)
        return true;
    if (descriptor_read_text(group->dir, unified ? "cgroup.events" : "cgroup.procs", text, sizeof text) < 0)
        return false;
    return unified ? strstr(text, "populated 0") != NULL : !text[0];
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

void cgroup_job_abandon(struct cgroup_job *job)
{
    for (size_t i = 0; i < job->host->count; i++) {
        descriptor_close(&job->groups[i].dir);
        descriptor_close(&job->groups[i].tasks);
    }
    descriptor_close(&job->oom_event);
}
