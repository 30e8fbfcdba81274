/* Prints one member of a JSON text, so that tests need nothing but a shell: json-field FILE denials.0.syscall
 * A string comes without quotes and escapes undone except \u, an object or array as it stands, `#` is the number of elements. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[16 << 20];

/* The end of the string that starts at `at` (a quote). */
static const char *end_of_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

/* The end of the value that starts at `at`. */
static const char *end_of_value(const char *at)
{
    int depth = 0;
    if (*at == '"')
        return end_of_string(at);
    for (; *at; at++) {
        if (*at == '"')
            at = end_of_string(at) - 1;
        else if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']') {
            if (depth-- <= 1)
                return depth < 0 ? at : at + 1;
        } else if (*at == ',' && depth == 0)
            return at;
    }
    return at;
}

/* The start of the member or element that `name` (of `length` bytes) names, or NULL. */
static const char *child(const char *at, const char *name, size_t length)
{
    bool object = *at == '{';
    long index = strtol(name, NULL, 10);
    if (!object && *at != '[')
        return NULL;
    at++;
    while (*at && *at != '}' && *at != ']') {
        const char *key = at;
        if (object)
            at = end_of_string(at) + 1;
        bool same = object ? !strncmp(key + 1, name, length) && key[1 + length] == '"' : index-- == 0;
        if (same)
            return at;
        at = end_of_value(at);
        at += *at == ',';
    }
    return NULL;
}

static int count(const char *at)
{
    int elements = 0;
    char name[16];
    while (snprintf(name, sizeof name, "%d", elements), child(at, name, strlen(name)))
        elements++;
    return elements;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) {
        fprintf(stderr, "usage: json-field FILE PATH\n");
        return 2;
    }
    const char *at = text;
    for (const char *part = argv[2]; at && *part;) {
        size_t length = strcspn(part, ".");
        if (length == 1 && *part == '#')
            return printf("%d\n", count(at)) < 0;
        at = child(at, part, length);
        part += length + (part[length] == '.');
    }
    if (!at)
        return 1;
    const char *end = end_of_value(at);
    bool string = *at == '"';
    for (at += string, end -= string; at < end; at++)
        if (!string || *at != '\\' || at[1] == 'u')
            putchar(*at);
        else
            putchar(*++at);
    putchar('\n');
    return 0;
}
