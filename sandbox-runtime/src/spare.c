#include "spare.h"

#include "descriptor.h"
#include "kernel.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void spare_init(struct spare *spare)
{
    *spare = (struct spare){.host_network = -1, .network = -1};
}

void spare_open(struct spare *spare)
{
    spare->host_network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

void spare_close(struct spare *spare)
{
    descriptor_close(&spare->network);
    descriptor_close(&spare->host_network);
    if (spare->has_groups)
        cgroup_job_remove(&spare->groups);
    spare->has_groups = false;
}

/* A new network namespace has a loopback device that is down. */
bool spare_loopback_up(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    OWNED_FD int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return socket_fd >= 0 && ioctl(socket_fd, SIOCSIFFLAGS, &loopback) == 0;
}

/* The supervisor visits the new namespace. If it could not come back, it would be no supervisor any more. */
static int make_network(const struct spare *spare)
{
    if (kernel_unshare(CLONE_NEWNET) < 0)
        return -1;
    int made = spare_loopback_up() ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;
    if (kernel_setns(spare->host_network, CLONE_NEWNET) < 0)
        abort();
    return made;
}

void spare_prepare(struct spare *spare, const struct cgroup_host *cgroups)
{
    if (spare->host_network < 0)
        return;
    if (spare->network < 0)
        spare->network = make_network(spare);
    if (!spare->has_groups) {
        struct fault fault = {.step = ""};
        cgroup_job_init(&spare->groups, cgroups);
        spare->has_groups = cgroup_job_create(&spare->groups, &fault);
        if (!spare->has_groups)
            cgroup_job_remove(&spare->groups);
    }
}

int spare_take_network(struct spare *spare)
{
    int network = spare->network;
    spare->network = -1;
    return network;
}

bool spare_take_groups(struct spare *spare, struct cgroup_job *groups)
{
    if (!spare->has_groups)
        return false;
    *groups = spare->groups;
    spare->has_groups = false;
    return true;
}
