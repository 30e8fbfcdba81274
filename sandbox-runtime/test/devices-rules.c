/* Processes in a group with the device program open nodes; the test compares what they got with the rules, and the counts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "devices.h"
#include "json.h"
#include "test-group.h"

static char folder[] = "/tmp/sandbus-devices-XXXXXX";
static char group[512];

static const char *node(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The errno of an open in the group, or 0. */
static int open_inside(const char *path, int flags)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        char procs[600];
        snprintf(procs, sizeof procs, "%s/cgroup.procs", group);
        int fd = open(procs, O_WRONLY);
        if (fd < 0 || write(fd, "0", 1) != 1)
            _exit(255);
        _exit(open(path, flags) >= 0 ? 0 : errno);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void expect_json(const struct devices *devices, const struct devices_job *job, const char *want)
{
    struct json_writer json;
    json_init(&json, 1 << 16);
    devices_write_json(devices, job, &json);
    check(json.length == strlen(want) && !memcmp(json.bytes, want, json.length), "the record", __LINE__);
    if (json.length != strlen(want) || memcmp(json.bytes, want, json.length))
        printf("  got  %.*s\n  want %s\n", (int)json.length, json.bytes, want);
    json_free(&json);
}

static void test_rules(struct devices *devices, int dir)
{
    struct fault fault = {0};
    struct device_grant grants[2];
    struct devices_job job;
    CHECK(devices_resolve(&grants[0], node("nvidia0"), "r", &fault));
    CHECK(devices_resolve(&grants[1], node("kfd"), NULL, &fault));
    grants[0].path = "/dev/nvidia0";
    grants[1].path = "/dev/kfd";
    CHECK(devices_begin(devices, &job, dir, grants, 2, &fault));
    if (fault.message[0])
        printf("  %s\n", fault.message);
    CHECK(open_inside(node("nvidia0"), O_RDONLY) == 0);
    CHECK(open_inside(node("nvidia0"), O_RDONLY) == 0);
    CHECK(open_inside(node("nvidia0"), O_WRONLY) == EPERM);
    CHECK(open_inside(node("nvidia0"), O_RDWR) == EPERM);
    CHECK(open_inside(node("kfd"), O_RDWR) == 0);
    CHECK(open_inside(node("other"), O_RDONLY) == EPERM);
    CHECK(open_inside(node("another"), O_RDONLY) == EPERM);
    CHECK(open_inside("/dev/null", O_RDWR) == 0);
    CHECK(open_inside(node("other"), O_PATH) == 0); /* names the node, opens no device */
    expect_json(devices, &job,
                "{\"available\":true,\"granted\":[\"/dev/nvidia0\",\"/dev/kfd\"],\"accesses\":["
                "{\"device\":\"/dev/nvidia0\",\"type\":\"c\",\"major\":1,\"minor\":5,\"allowed\":2,\"denied\":2},"
                "{\"device\":\"/dev/kfd\",\"type\":\"c\",\"major\":1,\"minor\":9,\"allowed\":1,\"denied\":0},"
                "{\"device\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":3,\"allowed\":1,\"denied\":0},"
                "{\"device\":\"other\",\"type\":\"c\",\"major\":1,\"minor\":11,\"allowed\":0,\"denied\":2}]}");
    devices_end(devices, &job);
    CHECK(open_inside("/dev/null", O_RDONLY) == EPERM); /* a group without rules may open nothing */
    devices_end(devices, &job);
}

static void test_faults(void)
{
    struct fault fault = {0};
    struct device_grant grant;
    CHECK(!devices_resolve(&grant, node("missing"), NULL, &fault) && fault.error == ENOENT &&
          strstr(fault.message, "missing"));
    CHECK(!devices_resolve(&grant, folder, NULL, &fault) && strstr(fault.message, "not a device node"));
    CHECK(!devices_resolve(&grant, "/dev/null", "rx", &fault) && strstr(fault.message, "'rx'"));
    CHECK(devices_resolve(&grant, "/dev/null", "wm", &fault) && grant.access == (DEVICE_WRITE | DEVICE_MKNOD));
}

int main(void)
{
    struct fault fault = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    int dir = test_group_make("devices", group, sizeof group);
    if (dir < 0 || !mkdtemp(folder)) {
        printf("devices-rules: skipped: no cgroup2 where this process may make a group\n");
        return 0;
    }
    CHECK(mknod(node("nvidia0"), S_IFCHR | 0666, makedev(1, 5)) == 0); /* the numbers of /dev/zero */
    CHECK(mknod(node("kfd"), S_IFCHR | 0666, makedev(1, 9)) == 0);     /* of /dev/urandom */
    CHECK(mknod(node("other"), S_IFCHR | 0666, makedev(1, 11)) == 0);  /* of /dev/kmsg */
    CHECK(mknod(node("another"), S_IFCHR | 0666, makedev(10, 229)) == 0);
    struct devices *devices = devices_load(4, &fault);
    CHECK(devices != NULL);
    if (devices) {
        test_rules(devices, dir);
        test_faults();
    } else {
        printf("  %s (%s)\n", fault.message, fault.mend);
    }
    devices_unload(devices);
    CHECK(rmdir(group) == 0);
    const char *names[] = {"nvidia0", "kfd", "other", "another"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(node(names[i]));
    rmdir(folder);
    printf(failures ? "devices-rules: %d failures\n" : "devices-rules: ok\n", failures);
    return failures != 0;
}
