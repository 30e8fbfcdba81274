#include "report.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool send_packet(int socket, const void *packet, size_t size, const int *descriptors, unsigned count)
{
    char control[CMSG_SPACE(REPORT_SOURCES_MAX * sizeof(int))] = {0};
    struct iovec bytes = {.iov_base = (void *)packet, .iov_len = size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (count) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (!header)
            return false;
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* Descriptors that did not come are -1. */
static ssize_t receive_packet(int socket, void *packet, size_t size, int *descriptors, unsigned most, int flags)
{
    char control[CMSG_SPACE(REPORT_SOURCES_MAX * sizeof(int))];
    struct iovec bytes = {.iov_base = packet, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(most * sizeof(int))};
    for (unsigned i = 0; i < most; i++)
        descriptors[i] = -1;
    ssize_t got = recvmsg(socket, &message, flags);
    if (got <= 0)
        return got;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(descriptors, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    return got;
}

bool report_send(int socket, const struct report *report, const int *descriptors, unsigned count)
{
    return send_packet(socket, report, sizeof *report, descriptors, count);
}

int report_receive(int socket, struct report *report, int descriptors[REPORT_DESCRIPTORS_MAX])
{
    ssize_t got;
    do /* a child that leaves without having read its go resets the connection; its last words are still there */
        got = receive_packet(socket, report, sizeof *report, descriptors, REPORT_DESCRIPTORS_MAX,
                             MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == ECONNRESET);
    if (got <= 0)
        return (int)got;
    if (got == (ssize_t)sizeof *report)
        return 1;
    errno = EPROTO;
    return -1;
}

bool report_send_order(int socket, const struct job_spec *spec, const int *sources, unsigned count)
{
    return send_packet(socket, &spec, sizeof spec, sources, count);
}

bool report_await_order(int socket, const struct job_spec **spec, int *sources, unsigned most)
{
    ssize_t got;
    do
        got = receive_packet(socket, spec, sizeof *spec, sources, most, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *spec;
}

bool report_send_groups(int socket, const int *tasks, unsigned count)
{
    return send_packet(socket, "c", 1, tasks, count);
}

int report_await_groups(int socket, int tasks[REPORT_GROUPS_MAX])
{
    char byte;
    ssize_t got;
    int count = 0;
    do
        got = receive_packet(socket, &byte, 1, tasks, REPORT_GROUPS_MAX, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    while (count < REPORT_GROUPS_MAX && tasks[count] >= 0)
        count++;
    return got == 1 ? count : -1;
}

bool report_send_go(int socket)
{
    return send(socket, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool report_await_go(int socket)
{
    char go;
    ssize_t got;
    do
        got = read(socket, &go, 1);
    while (got < 0 && errno == EINTR);
    return got == 1;
}
