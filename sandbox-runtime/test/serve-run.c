/* Behaves like `launcher run`, by one job of `launcher serve`: the tests of `run` then test a prepared child and the frames.
 * LAUNCHER=build/test/serve-run test/run NAME... Whatever is not `run` is left to the launcher. */
#include "serve-client.h"

#include <fcntl.h>
#include <sys/signalfd.h>

static struct client client;
static uint32_t credit = FRAME_BYTES_MAX;
static bool input_ended;

static int finish(const char *result, size_t length, const char *where)
{
    int fd = STDERR_FILENO;
    if (where)
        fd = strncmp(where, "fd:", 3) == 0 ? atoi(where + 3) : open(where, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool written = fd >= 0 && write(fd, result, length) == (ssize_t)length && write(fd, "\n", 1) == 1;
    client_end(&client);
    const char *code = strstr(result, "\"exitCode\":"), *signal_text = strstr(result, "\"signal\":");
    if (!written || !code || !signal_text || strstr(result, "\"outcome\":\"setup-failed\""))
        return 125;
    return code[11] != 'n' ? atoi(code + 11) : 128 + atoi(signal_text + 9);
}

static uint64_t kept(const char *result, const char *stream)
{
    const char *at = strstr(result, stream);
    at = at ? strstr(at, "\"kept\":") : NULL;
    return at ? strtoull(at + 7, NULL, 10) : 0;
}

static void feed(void)
{
    char bytes[FRAME_BYTES_MAX];
    ssize_t got = read(STDIN_FILENO, bytes, credit < sizeof bytes ? credit : sizeof bytes);
    input_ended = got <= 0;
    credit -= got > 0 ? (uint32_t)got : 0;
    client_send(&client, FRAME_INPUT, 1, bytes, got > 0 ? (size_t)got : 0);
}

/* A reader that is gone is told to nobody here: its output is dropped, and the job runs on. */
static void pass(const struct client_frame *frame, uint64_t got[2])
{
    int stream = frame->header.type - FRAME_STDOUT;
    for (size_t at = 0; at < frame->header.length;) {
        ssize_t put = write(stream + 1, frame->payload + at, frame->header.length - at);
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    got[stream] += frame->header.length;
    client_credit(&client, 1, (uint32_t)stream + 1, frame->header.length);
}

static int serve(const char *where)
{
    uint64_t got[2] = {0, 0};
    char *result = NULL;
    size_t length = 0;
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    int signals = signalfd(-1, &ending, SFD_CLOEXEC);
    while (!result || got[0] < kept(result, "\"stdout\":") || got[1] < kept(result, "\"stderr\":")) {
        struct pollfd states[] = {{.fd = client.socket, .events = POLLIN},
                                  {.fd = signals, .events = POLLIN},
                                  {.fd = input_ended || !credit || result ? -1 : STDIN_FILENO, .events = POLLIN}};
        struct client_frame frame;
        poll(states, 3, -1);
        if (states[2].revents)
            feed();
        if (states[1].revents) {
            struct signalfd_siginfo info;
            (void)!read(signals, &info, sizeof info);
            client_send(&client, FRAME_CANCEL, 1, NULL, 0);
        }
        if (!states[0].revents)
            continue;
        if (!client_take(&client, &frame))
            return 125;
        if (frame.header.type == FRAME_INPUT_CREDIT)
            credit += client_u32(frame.payload);
        else if (frame.header.type == FRAME_RESULT) {
            result = strdup(frame.payload);
            length = frame.header.length;
        } else if (frame.header.type == FRAME_STDOUT || frame.header.type == FRAME_STDERR)
            pass(&frame, got);
    }
    return finish(result, length, where);
}

int main(int count, char **words)
{
    static char start[FRAME_START_MAX];
    const char *where = NULL;
    size_t length = 0;
    signal(SIGPIPE, SIG_IGN);
    if (count < 2 || strcmp(words[1], "run") != 0 || (count == 3 && strcmp(words[2], "--help") == 0)) {
        execv(client_launcher(), words);
        return 127;
    }
    bool options = true;
    for (int i = 2; i < count; i++) {
        options = options && strcmp(words[i], "--") != 0;
        if (options && strcmp(words[i], "--result") == 0 && i + 1 < count) {
            where = words[++i];
            continue;
        }
        size_t size = strlen(words[i]) + 1;
        if (length + size > sizeof start)
            return 125;
        memcpy(start + length, words[i], size);
        length += size;
    }
    struct client_frame hello;
    if (!client_start(&client, "1") || !client_take(&client, &hello) || hello.header.type != FRAME_HELLO)
        return 125;
    client_send(&client, FRAME_START, 1, start, length);
    client_credit(&client, 1, 1, 1 << 20);
    client_credit(&client, 1, 2, 1 << 20);
    return serve(where);
}
