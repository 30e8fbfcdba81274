/* A control group of a test's own, below the group that the test runs in. */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the group "sandbus-<name>-<pid>" on cgroup2, wherever that is mounted, and writes its path to path[size].
 * Returns a descriptor of its directory, which the caller closes before it removes the group; -1 where there is no cgroup2. */
static inline int test_group_make(const char *name, char *path, size_t size)
{
    char own[256] = "", mount[128] = "", line[512];
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "0::/", 4))
            sscanf(line, "0::%255s", own);
    if (file)
        fclose(file);
    file = fopen("/proc/mounts", "r");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, " cgroup2 "))
            sscanf(line, "%*s %127s", mount);
    if (file)
        fclose(file);
    snprintf(path, size, "%s%s/sandbus-%s-%d", mount, own, name, (int)getpid());
    if (!mount[0] || mkdir(path, 0755) != 0)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
