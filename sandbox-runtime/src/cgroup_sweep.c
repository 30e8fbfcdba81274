#include "cgroup.h"

#include "descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Kills what is in a dead launcher's group. */
static void kill_group(int group)
{
    char list[16384];
    if (descriptor_write_text(group, "cgroup.kill", "1"))
        return;
    if (descriptor_read_text(group, "cgroup.procs", list, sizeof list) <= 0)
        return;
    for (char *pid = strtok(list, "\n"); pid; pid = strtok(NULL, "\n"))
        kill((pid_t)atoi(pid), SIGKILL);
}

/* Removes the group `name` if nobody holds its lock. Its processes need a moment to die: a tenth of a second at most. */
static bool sweep_group(int parent, const char *name)
{
    OWNED_FD int group = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0 || flock(group, LOCK_EX | LOCK_NB) < 0)
        return false;
    for (int tries = 0; tries < 100; tries++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
            return true;
        kill_group(group);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static unsigned sweep_hierarchy(const struct cgroup_hierarchy *own)
{
    unsigned removed = 0;
    int copy = openat(own->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        descriptor_close(&copy);
        return 0;
    }
    if (flock(copy, LOCK_EX | LOCK_NB) == 0)
        for (struct dirent *entry; (entry = readdir(entries));)
            if (strncmp(entry->d_name, CGROUP_JOB_PREFIX, sizeof CGROUP_JOB_PREFIX - 1) == 0)
                removed += sweep_group(own->dir, entry->d_name);
    closedir(entries);
    return removed;
}

unsigned cgroup_host_sweep(const struct cgroup_host *host)
{
    unsigned removed = 0;
    for (size_t i = 0; i < host->count; i++)
        removed += sweep_hierarchy(&host->hierarchies[i]);
    return removed;
}
