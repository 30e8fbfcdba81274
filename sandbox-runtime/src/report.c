#include "report.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool report_send(int socket, const struct report *report, const int *descriptors, unsigned count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(REPORT_DESCRIPTORS_MAX * sizeof(int))] = {0};
    struct iovec bytes = {.iov_base = (void *)report, .iov_len = sizeof *report};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (count) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = (struct cmsghdr *)control; /* what CMSG_FIRSTHDR says, which may also say NULL */
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *report;
}

int report_receive(int socket, struct report *report, int descriptors[REPORT_DESCRIPTORS_MAX])
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(REPORT_DESCRIPTORS_MAX * sizeof(int))];
    struct iovec bytes = {.iov_base = report, .iov_len = sizeof *report};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    for (unsigned i = 0; i < REPORT_DESCRIPTORS_MAX; i++)
        descriptors[i] = -1;
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got <= 0)
        return (int)got;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(descriptors, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    if (got == (ssize_t)sizeof *report)
        return 1;
    errno = EPROTO;
    return -1;
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
