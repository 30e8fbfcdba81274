/*
 * The parsers of options and frames under bytes that nobody means: fuzz-parsers [SECONDS [SEED]]. Each input is a command line,
 * words ended by zero bytes, as START has them, after a frame's header. What holds for all inputs is checked here; that nothing
 * is read or written outside is checked by building this with -fsanitize (make asan).
 *
 * It mutates the inputs below by itself, the same way for the same seed; `make fuzz` takes libFuzzer instead, where clang is there.
 */
#include "clock.h"
#include "frames.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 4096 };

#define HOLDS(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void check_fault(const struct fault *fault)
{
    HOLDS(fault->message[0] && memchr(fault->message, 0, sizeof fault->message));
    HOLDS(fault->mend[0] && memchr(fault->mend, 0, sizeof fault->mend));
}

/* Whether a part of the path is `..`, which leads out of the place that it is joined to. */
static bool climbs(const char *path)
{
    while (*path) {
        size_t part = strcspn(path, "/");
        if (part == 2 && path[0] == '.' && path[1] == '.')
            return true;
        path += part + (path[part] == '/');
    }
    return false;
}

static void check_list(const struct spec_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        HOLDS(list->items[i].name[0] && list->items[i].value);
}

static void check_spec(const struct job_spec *spec)
{
    HOLDS(spec->memory_bytes && spec->memory_bytes <= 1ULL << 50 && spec->tmp_size_bytes && spec->output_limit_bytes);
    HOLDS(spec->cpu_thousandths >= 10 && spec->cpu_thousandths <= 1000000 && spec->processes && spec->wall_us);
    HOLDS(spec->uid <= 0x7fffffff && spec->working_dir[0] == '/' && spec->program_count && spec->program[0]);
    HOLDS(!spec->program[spec->program_count] && (!spec->plugin_path || !strchr(spec->plugin_name, '/')));
    check_list(&spec->inputs);
    check_list(&spec->binds);
    check_list(&spec->devices);
    check_list(&spec->environment);
    for (size_t i = 0; i < spec->binds.count; i++)
        HOLDS(spec->binds.items[i].value[0] == '/' && !climbs(spec->binds.items[i].value));
    for (size_t i = 0; i < spec->inputs.count; i++)
        HOLDS(spec->inputs.items[i].name[0] != '/' && !climbs(spec->inputs.items[i].name));
}

static void try_options(int count, char **words)
{
    struct job_spec spec;
    struct serve_settings settings = {.most_jobs = 1};
    struct fault fault = {.step = ""}, other = {.step = ""};
    HOLDS(options_init(&spec, &fault));
    if (options_parse(&spec, count, words, &fault))
        check_spec(&spec);
    else
        check_fault(&fault);
    job_spec_free(&spec);
    if (!serve_settings_parse(&settings, count, words, &other))
        check_fault(&other);
}

static void try_words(const unsigned char *bytes, size_t size)
{
    static char *words[FRAME_WORDS_MAX + 1];
    struct fault fault = {.step = ""};
    int count = 0;
    char *payload = malloc(size ? size : 1); /* of the exact size, so that a byte too far is seen */
    HOLDS(payload);
    if (size)
        memcpy(payload, bytes, size);
    if (frame_read_words(payload, size, words, &count, &fault)) {
        size_t total = 0;
        for (int i = 0; i < count; i++)
            total += strlen(words[i]) + 1;
        HOLDS(total == size && !words[count]);
        try_options(count, words);
    } else {
        check_fault(&fault);
    }
    free(payload);
}

static void try_header(const unsigned char *bytes)
{
    struct frame_header header;
    struct frame_credit credit;
    struct fault fault = {.step = ""};
    unsigned char again[FRAME_HEADER_SIZE];
    if (frame_read_header(bytes, &header, &fault)) {
        HOLDS(header.job && header.length <= FRAME_START_MAX);
        frame_write_header(again, &header);
        HOLDS(memcmp(again, bytes, sizeof again) == 0);
    } else {
        check_fault(&fault);
    }
    fault = (struct fault){.step = ""};
    if (!frame_read_credit(bytes, &credit, &fault))
        check_fault(&fault);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size < FRAME_HEADER_SIZE)
        return 0;
    try_header(bytes);
    try_words(bytes + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE);
    return 0;
}

#ifndef WITH_LIBFUZZER

#define HEADER "\x10\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0"
static const struct {
    const char *bytes;
    size_t size;
} seeds[] = {
#define SEED(words) {HEADER words, sizeof HEADER words}
    SEED("--memory\00064M\0--cpus\0000.5\0--pids\00064\0--wall\0001.5\0--\0true"),
    SEED("--plugin\0/a/b\0--plugin-name\0b\0--plugin-sha256\0"
         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\0--\0/plugin/b\0x"),
    SEED("--input\0a/b=/c\0--input\0d=e\0--collect\0/o\0--ro-bind\0/usr:/opt/x\0--ro-bind=/y\0--\0a"),
    SEED("--device\0/dev/null:r\0--device\0/dev/a/b\0--env\0A=b=c\0--workdir\0/tmp\0--network\0none\0--\0x"),
    SEED("--on-violation\0kill\0--result\0fd:3\0--uid\00012345\0--cpu-time\0000.000001\0--output-limit\0001G\0--\0y"),
    SEED("--fd\0003\0--jobs\00016\0--tmp-size\0001K\0--\0z"),
};

static const char *const pieces[] = {"--",       "--memory", "--env",  "--input", "--ro-bind", "--device", "--result",
                                     "=",        "/",        "..",     ".",       ":",         "K",        "G",
                                     "99999999", "0",        "-1",     "1e9",     "0.0000001", "fd:",      "\xff\xfe",
                                     "/dev/",    "A=",       "../../", "\0",      "--=x",      "%s%n"};

static uint64_t state;

static uint64_t next_random(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* Puts `piece` in the place of `removed` bytes at `at`. Returns the new size. */
static size_t replace(unsigned char *input, size_t size, size_t at, size_t removed, const char *piece, size_t length)
{
    if (size - removed + length > INPUT_MAX)
        return size;
    memmove(input + at + length, input + at + removed, size - at - removed);
    memcpy(input + at, piece, length);
    return size - removed + length;
}

static size_t mutate(unsigned char *input, size_t size)
{
    size_t at = next_random(size), left = size - at;
    const char *piece = pieces[next_random(sizeof pieces / sizeof pieces[0])];
    char copy[INPUT_MAX];
    switch (next_random(6)) {
    case 0:
        input[at] ^= (unsigned char)(1U << next_random(8));
        return size;
    case 1:
        input[at] = (unsigned char)next_random(256);
        return size;
    case 2:
        return replace(input, size, at, 0, piece, piece[0] ? strlen(piece) : 1);
    case 3:
        return replace(input, size, at, left < 8 ? left : next_random(8), piece, piece[0] ? strlen(piece) : 1);
    case 4: /* a part of it twice */
        left = next_random(left) + 1;
        memcpy(copy, input + at, left);
        return replace(input, size, at, 0, copy, left);
    default:
        return size > FRAME_HEADER_SIZE + 2 ? size - next_random(size - FRAME_HEADER_SIZE - 1) : size;
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    uint64_t end_us = clock_now_us() + (uint64_t)(seconds * 1e6), inputs = 0;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 20240229;
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        LLVMFuzzerTestOneInput((const unsigned char *)seeds[i].bytes, seeds[i].size);
    while (clock_now_us() < end_us) {
        unsigned char input[INPUT_MAX];
        size_t seed = next_random(sizeof seeds / sizeof seeds[0]), size = seeds[seed].size;
        memcpy(input, seeds[seed].bytes, size);
        for (uint64_t i = next_random(12) + 1; i; i--) {
            size = mutate(input, size);
            LLVMFuzzerTestOneInput(input, size);
            inputs++;
        }
    }
    printf("fuzz-parsers: %llu inputs, nothing wrong\n", (unsigned long long)inputs);
    return 0;
}

#endif
