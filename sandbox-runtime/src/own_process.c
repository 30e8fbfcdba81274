#include "own_process.h"

#include "kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

void own_process_settle_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
    kernel_close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

void own_process_hide_words(int count, char **words)
{
    for (int i = 0; i < count; i++)
        memset(words[i], 0, strlen(words[i]));
}

bool own_process_watch_signals(struct watch *watch, struct loop *loop, void (*ready)(struct watch *, uint32_t),
                               void *owner)
{
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGHUP);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTIN, SIG_IGN); /* in the background of a terminal its input ends, and the launcher goes on */
    signal(SIGTTOU, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored by the parent, it would reap the job before its end is read */
    watch_init(watch, signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK), ready, owner);
    return watch->fd >= 0 && loop_watch(loop, watch, EPOLLIN);
}

bool own_process_take_signal(const struct watch *watch)
{
    struct signalfd_siginfo info;
    return read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info;
}
