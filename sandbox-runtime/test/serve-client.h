/* A client of `launcher serve` for tests and the benchmark: starts one, sends frames, takes frames. It waits with a deadline,
 * so that a test that goes wrong says so. */
#ifndef SANDBUS_SERVE_CLIENT_H
#define SANDBUS_SERVE_CLIENT_H

#include "frames.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENT_WAIT_MS = 30000 };

struct client {
    pid_t launcher;
    int socket; /* both ways */
};

struct client_frame {
    struct frame_header header;
    char *payload; /* ends with a zero byte; valid until the next frame is taken */
};

static const char *client_launcher(void)
{
    static char path[4096];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/launcher", build ? build : "build");
    return path;
}

static inline bool client_start(struct client *client, const char *jobs)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    client->launcher = fork();
    if (client->launcher == 0) {
        dup2(pair[1], 3);
        execl(client_launcher(), "launcher", "serve", "--fd", "3", "--jobs", jobs, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    client->socket = pair[0];
    return client->launcher > 0;
}

static inline bool client_send_bytes(const struct client *client, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length) {
        ssize_t put = send(client->socket, next, length, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        next += put;
        length -= (size_t)put;
    }
    return true;
}

static inline bool client_send(const struct client *client, enum frame_type type, uint64_t job, const void *bytes,
                               size_t length)
{
    unsigned char header[FRAME_HEADER_SIZE];
    frame_write_header(header, &(struct frame_header){.type = (uint8_t)type, .job = job, .length = (uint32_t)length});
    struct iovec parts[] = {{.iov_base = header, .iov_len = sizeof header},
                            {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t put = sendmsg(client->socket, &message, MSG_NOSIGNAL);
    if (put < (ssize_t)sizeof header)
        return false; /* a socket with room for less than a header is none that the tests make */
    size_t sent = (size_t)put - sizeof header;
    return client_send_bytes(client, (const char *)bytes + sent, length - sent);
}

/* START with words separated by one space each. */
static inline bool client_run(const struct client *client, uint64_t job, const char *format, ...)
{
    char words[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    for (int i = 0; i < length; i++)
        if (words[i] == ' ')
            words[i] = 0;
    return client_send(client, FRAME_START, job, words, (size_t)length + 1);
}

static inline bool client_credit(const struct client *client, uint64_t job, uint32_t stream, uint32_t bytes)
{
    unsigned char payload[8];
    frame_write_u32(payload, stream);
    frame_write_u32(payload + 4, bytes);
    return client_send(client, FRAME_CREDIT, job, payload, sizeof payload);
}

static inline bool client_receive(const struct client *client, void *to, size_t length)
{
    char *next = to;
    while (length) {
        struct pollfd state = {.fd = client->socket, .events = POLLIN};
        if (poll(&state, 1, CLIENT_WAIT_MS) <= 0)
            return false;
        ssize_t got = recv(client->socket, next, length, 0);
        if (got <= 0)
            return false;
        next += got;
        length -= (size_t)got;
    }
    return true;
}

static inline uint32_t client_u32(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* The next frame, or false at the end of the stream and when nothing comes. */
static inline bool client_take(const struct client *client, struct client_frame *frame)
{
    static char *payload;
    unsigned char header[FRAME_HEADER_SIZE];
    frame->payload = NULL;
    if (!client_receive(client, header, sizeof header))
        return false;
    frame->header = (struct frame_header){.length = client_u32(header),
                                          .type = header[4],
                                          .job = client_u32(header + 8) | (uint64_t)client_u32(header + 12) << 32};
    if (frame->header.length > FRAME_RESULT_MAX)
        return false;
    payload = realloc(payload, frame->header.length + 1);
    payload[frame->header.length] = 0;
    frame->payload = payload;
    return client_receive(client, payload, frame->header.length);
}

/* Closes the connection unless it is closed, and returns the launcher's wait status; -1 when it does not end. */
static inline int client_end(struct client *client)
{
    int status = -1;
    if (client->socket >= 0)
        close(client->socket);
    client->socket = -1;
    for (int i = 0; i < CLIENT_WAIT_MS / 10; i++) {
        if (waitpid(client->launcher, &status, WNOHANG) == client->launcher)
            return status;
        usleep(10000);
    }
    kill(client->launcher, SIGKILL);
    waitpid(client->launcher, &status, 0);
    return -1;
}

#endif
