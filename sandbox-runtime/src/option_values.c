#include "option_values.h"

#include <limits.h>
#include <string.h>

static bool out_of_memory(struct fault *fault)
{
    return fault_set(fault, 0, "free some memory", "out of memory");
}

/* Reads decimal digits up to `limit`; returns what follows them, or NULL where there are none or they are too many. */
static const char *read_digits(const char *text, uint64_t limit, uint64_t *number)
{
    const char *next = text;
    *number = 0;
    for (; *next >= '0' && *next <= '9'; next++) {
        uint64_t digit = (uint64_t)(*next - '0');
        if (*number > (limit - digit) / 10)
            return NULL;
        *number = *number * 10 + digit;
    }
    return next == text ? NULL : next;
}

/* Reads a decimal fraction as an integer count of 1/scale; scale is a power of ten, finer digits are refused. */
static bool read_scaled(const char *text, uint64_t scale, uint64_t limit, uint64_t *number)
{
    uint64_t whole;
    const char *next = read_digits(text, limit / scale, &whole);
    if (!next)
        return false;
    *number = whole * scale;
    if (*next == '.')
        for (next++; *next >= '0' && *next <= '9'; next++) {
            scale /= 10;
            if (scale == 0)
                return false;
            *number += (uint64_t)(*next - '0') * scale;
        }
    return *next == 0 && *number > 0 && *number <= limit;
}

bool option_read_size(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    uint64_t number;
    const char *unit = read_digits(value, 1ULL << 40, &number);
    unsigned shift = unit && *unit == 'K' ? 10 : unit && *unit == 'M' ? 20 : unit && *unit == 'G' ? 30 : 0;
    if (!unit || unit[shift ? 1 : 0] || !number || number > (1ULL << 50) >> shift)
        return fault_set(fault, 0, "for example 512K, 256M or 2G",
                         "a size is a whole number of bytes above 0, or of K, M or G");
    *(uint64_t *)target = number << shift;
    return true;
}

bool option_read_count(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    uint64_t number;
    const char *rest = read_digits(value, 4000000, &number);
    if (!rest || *rest || !number)
        return fault_set(fault, 0, "for example 64", "a count is a whole number from 1 to 4000000");
    *(uint64_t *)target = number;
    return true;
}

bool option_read_seconds(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    if (!read_scaled(value, 1000000, 31536000ULL * 1000000, target))
        return fault_set(fault, 0, "for example 10 or 0.5",
                         "a time is in seconds, above 0, at most a year, to the microsecond");
    return true;
}

bool option_read_thousandths(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    if (!read_scaled(value, 1000, 1000000, target) || *(uint64_t *)target < 10)
        return fault_set(fault, 0, "for example 2 or 0.5", "cores are from 0.01 to 1000, to the thousandth");
    return true;
}

bool option_read_uid(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    uint64_t number;
    const char *rest = read_digits(value, INT_MAX, &number);
    if (!rest || *rest || !number)
        return fault_set(fault, 0, "leave it out: the launcher then takes one that no other job has",
                         "a user id is from 1 to 2147483647; a job never runs as root");
    *(uint64_t *)target = number;
    return true;
}

bool option_read_text(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    if (!*value)
        return fault_set(fault, 0, "give a value", "the value is empty");
    const char *copy = arena_copy(&spec->arena, value, strlen(value));
    *(const char **)target = copy;
    return copy || out_of_memory(fault);
}

bool option_read_absolute(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    if (*value != '/')
        return fault_set(fault, 0, "begin it with /", "the path is not absolute");
    return option_read_text(spec, target, value, fault);
}

bool option_read_file_name(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    if (!*value || strchr(value, '/') || strlen(value) > NAME_MAX || strcmp(value, ".") == 0 ||
        strcmp(value, "..") == 0)
        return fault_set(fault, 0, "for example resize.py", "this is no file name");
    return option_read_text(spec, target, value, fault);
}

bool option_read_sha256(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    if (strlen(value) != 64 || strspn(value, "0123456789abcdef") != 64)
        return fault_set(fault, 0, "see: sha256sum FILE", "a digest is 64 hexadecimal digits in lower case");
    return option_read_text(spec, target, value, fault);
}

/* Adds the pair to the list; the first `name_length` bytes of `text` are its name. */
static bool add_pair(struct job_spec *spec, struct spec_list *list, const char *text, size_t name_length,
                     const char *value, struct fault *fault)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        struct spec_pair *items = arena_allocate(&spec->arena, capacity * sizeof *items);
        if (!items)
            return out_of_memory(fault);
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    struct spec_pair *pair = &list->items[list->count];
    pair->name = arena_copy(&spec->arena, text, name_length);
    pair->value = arena_copy(&spec->arena, value, strlen(value));
    if (!pair->name || !pair->value)
        return out_of_memory(fault);
    list->count++;
    return true;
}

/* A path that stays below the directory that it is joined to. */
static bool stays_below(const char *path, size_t length)
{
    if (!length || path[0] == '/' || path[length - 1] == '/')
        return false;
    for (size_t start = 0; start <= length;) {
        size_t end = start;
        while (end < length && path[end] != '/')
            end++;
        size_t part = end - start;
        if (!part || part > NAME_MAX || (part == 1 && path[start] == '.') ||
            (part == 2 && !memcmp(path + start, "..", 2)))
            return false;
        start = end + 1;
    }
    return true;
}

bool option_read_input(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    const char *equals = strchr(value, '=');
    if (!equals || !stays_below(value, (size_t)(equals - value)) || !equals[1])
        return fault_set(fault, 0, "for example data/in.csv=/srv/in.csv",
                         "an input is NAME=FILE, NAME a relative path without . and ..");
    return add_pair(spec, target, value, (size_t)(equals - value), equals + 1, fault);
}

bool option_read_bind(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    const char *colon = strchr(value, ':');
    size_t source_length = colon ? (size_t)(colon - value) : strlen(value);
    const char *inside = colon ? colon + 1 : value;
    if (value[0] != '/' || !stays_below(inside + 1, strlen(inside) ? strlen(inside) - 1 : 0) || inside[0] != '/')
        return fault_set(fault, 0, "for example /opt/python:/opt/python",
                         "a bind is SRC[:DST], both absolute, DST without . and .. and not / itself");
    return add_pair(spec, target, value, source_length, inside, fault);
}

bool option_read_device(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    const char *colon = strchr(value, ':');
    const char *access = colon ? colon + 1 : "rw";
    size_t path_length = colon ? (size_t)(colon - value) : strlen(value);
    bool below_dev = strncmp(value, "/dev/", 5) == 0 && path_length > 5 && stays_below(value + 5, path_length - 5);
    if (!below_dev || !*access || strspn(access, "rwm") != strlen(access))
        return fault_set(fault, 0, "for example /dev/nvidia0:rw",
                         "a device is a PATH below /dev, then perhaps : and some of r, w, m");
    return add_pair(spec, target, value, path_length, access, fault);
}

bool option_read_environment(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return fault_set(fault, 0, "for example LANG=C.UTF-8", "a variable is K=V");
    return add_pair(spec, target, value, (size_t)(equals - value), equals + 1, fault);
}

/* One of two words; the second one sets the flag. */
static bool read_choice(bool *target, const char *value, const char *off, const char *on, struct fault *fault)
{
    bool is_on = strcmp(value, on) == 0;
    if (!is_on && strcmp(value, off) != 0)
        return fault_set(fault, 0, "take one of the two", "this is neither %s nor %s", off, on);
    *target = is_on;
    return true;
}

bool option_read_network(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    return read_choice(target, value, "none", "host", fault);
}

bool option_read_violation(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    return read_choice(target, value, "errno", "kill", fault);
}

/* Two descriptors, or one for both ways. */
bool option_read_descriptors(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    uint64_t in, out;
    const char *rest = read_digits(value, 1 << 20, &in);
    out = in;
    if (rest && *rest == ',')
        rest = read_digits(rest + 1, 1 << 20, &out);
    if (!rest || *rest)
        return fault_set(fault, 0, "for example 3,4, or 3 for one socket", "this is not N,M");
    ((int *)target)[0] = (int)in;
    ((int *)target)[1] = (int)out;
    return true;
}

bool option_read_jobs(struct job_spec *spec, void *target, const char *value, struct fault *fault)
{
    (void)spec;
    uint64_t number;
    const char *rest = read_digits(value, 1024, &number);
    if (!rest || *rest || !number)
        return fault_set(fault, 0, "for example 16", "jobs are from 1 to 1024");
    *(uint64_t *)target = number;
    return true;
}
