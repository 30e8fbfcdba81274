/* A plugin that does what plugins should not: misbehave HOW [N]. Each way is one that users of other systems reported. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static long number; /* N */
static char huge[300 << 20];

_Noreturn static void *spin_forever(void *unused)
{
    (void)unused;
    for (volatile unsigned long turns = 0;; turns++)
        ;
}

static int spin(void)
{
    pthread_t thread;
    for (long i = 1; i < number; i++)
        pthread_create(&thread, NULL, spin_forever, NULL);
    return spin_forever(NULL) != NULL;
}

static int fork_bomb(void)
{
    while (fork() >= -1)
        ;
    return 0;
}

/* Children whose parents are gone at once: PID 1 has to reap them all. */
static int orphans(void)
{
    for (long i = 0; i < number; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (fork() == 0)
                _exit(0);
            _exit(0);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    return 0;
}

/* A process that has left session, group and parent, ignores what it can, and holds the standard streams. */
static int daemonise(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (int i = 1; i < NSIG; i++)
                signal(i, SIG_IGN);
            for (;;)
                pause();
        }
        _exit(0);
    }
    wait(NULL);
    puts("parent ends");
    return 0;
}

static int stopped(void)
{
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, NULL, WUNTRACED);
    puts("child stopped");
    return 0;
}

_Noreturn static int hog(void)
{
    for (;;) {
        char *block = malloc(1 << 20);
        if (block)
            memset(block, 1, 1 << 20);
    }
}

static int huge_static(void)
{
    memset(huge, 1, sizeof huge);
    return huge[number % (long)sizeof huge];
}

/* The hog is a child; the parent would go on happily. */
static int child_hog(void)
{
    if (fork() == 0)
        hog();
    wait(NULL);
    sleep(5);
    return 0;
}

static int flood(void)
{
    char block[65536];
    memset(block, 'y', sizeof block);
    for (;;)
        if (write(1, block, sizeof block) < 0)
            return 1;
}

/* N bytes: the decimal digits again and again. */
static int write_bytes(void)
{
    for (long i = 0; i < number; i++)
        putchar('0' + (int)(i % 10));
    return fflush(stdout) != 0;
}

static int descriptors(void)
{
    DIR *open_ones = opendir("/proc/self/fd");
    int own = dirfd(open_ones);
    for (struct dirent *entry; (entry = readdir(open_ones));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != own)
            printf("%s ", entry->d_name);
    return putchar('\n') < 0;
}

/* Opens as many as it can get. */
static int many_descriptors(void)
{
    long opened = 0;
    while (opened < number && open("/dev/null", O_RDONLY) >= 0)
        opened++;
    printf("%ld\n", opened);
    return 0;
}

static void put(const char *path, const char *what)
{
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(what, file);
        fclose(file);
    }
}

static int hostile_outputs(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/job/out/socket"};
    put("/job/out/plain.txt", "hello\n");
    mkdir("/job/out/a", 0755);
    put("/job/out/a/b.txt", "deeper\n");
    (void)!symlink("/etc/passwd", "/job/out/link");
    (void)!symlink("/usr", "/job/out/directory-link");
    mkfifo("/job/out/fifo", 0644);
    bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
    put("/job/out/sparse", "x");
    (void)!truncate("/job/out/sparse", 1L << 40);
    put("/job/out/control\nname", "x");
    put("/job/out/latin\xe9", "x");
    put("/job/out/secret", "no mode bits\n");
    chmod("/job/out/secret", 0);
    return 0;
}

static int many_files(void)
{
    char path[64];
    for (long i = 0; i < number; i++) {
        snprintf(path, sizeof path, "/job/out/%ld", i);
        int file = open(path, O_CREAT | O_WRONLY, 0644);
        if (file < 0)
            break;
        close(file);
    }
    return 0;
}

/* The directory itself becomes a link out of the job. */
static int linked_out(void)
{
    rmdir("/job/out");
    return symlink("/usr/share", "/job/out");
}

static int close_streams(void)
{
    for (int i = 0; i < 3; i++)
        close(i);
    sleep(100);
    return 0;
}

static int fill(void)
{
    static const char *const places[] = {"/tmp/fill", "/job/fill", "/dev/shm/fill"};
    long total = 0;
    char block[65536] = {0};
    for (int i = 0; i < 3; i++) {
        int file = open(places[i], O_CREAT | O_WRONLY, 0644);
        for (ssize_t put_bytes; (put_bytes = write(file, block, sizeof block)) > 0;)
            total += put_bytes;
    }
    printf("%ld\n", total);
    return 0;
}

static const struct {
    const char *how;
    int (*run)(void);
} ways[] = {
    {"spin", spin},
    {"fork-bomb", fork_bomb},
    {"orphans", orphans},
    {"daemon", daemonise},
    {"stopped", stopped},
    {"hog", hog},
    {"huge-static", huge_static},
    {"child-hog", child_hog},
    {"flood", flood},
    {"write", write_bytes},
    {"descriptors", descriptors},
    {"many-descriptors", many_descriptors},
    {"outputs", hostile_outputs},
    {"many-files", many_files},
    {"linked-out", linked_out},
    {"close-streams", close_streams},
    {"fill", fill},
};

int main(int argc, char **argv)
{
    number = argc > 2 ? atol(argv[2]) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(argv[1], ways[i].how) == 0)
            return ways[i].run();
    fprintf(stderr, "misbehave: no such way\n");
    return 2;
}
