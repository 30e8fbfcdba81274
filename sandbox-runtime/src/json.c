#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json_writer *json, size_t limit_bytes)
{
    *json = (struct json_writer){.limit = limit_bytes};
}

void json_free(struct json_writer *json)
{
    free(json->bytes);
    json_init(json, json->limit);
}

/* Makes room for `more` bytes by doubling; past the limit it sets `overflow` and refuses from then on. */
static bool reserve(struct json_writer *json, size_t more)
{
    if (json->overflow || more > json->limit - json->length) {
        json->overflow = true;
        return false;
    }
    if (json->length + more <= json->capacity)
        return true;
    size_t capacity = json->capacity ? json->capacity : 1024;
    while (capacity < json->length + more)
        capacity *= 2;
    char *bytes = realloc(json->bytes, capacity);
    if (!bytes) {
        json->overflow = true;
        return false;
    }
    json->bytes = bytes;
    json->capacity = capacity;
    return true;
}

static void append(struct json_writer *json, const char *bytes, size_t length)
{
    if (!length || !reserve(json, length))
        return;
    memcpy(json->bytes + json->length, bytes, length);
    json->length += length;
}

/* A comma is due unless this is the first thing in its container, or the value of a key just written. */
static void separate(struct json_writer *json)
{
    if (!json->length || json->overflow)
        return;
    char last = json->bytes[json->length - 1];
    if (last != '{' && last != '[' && last != ':')
        append(json, ",", 1);
}

void json_begin_object(struct json_writer *json)
{
    separate(json);
    append(json, "{", 1);
}

void json_end_object(struct json_writer *json)
{
    append(json, "}", 1);
}

void json_begin_array(struct json_writer *json)
{
    separate(json);
    append(json, "[", 1);
}

void json_end_array(struct json_writer *json)
{
    append(json, "]", 1);
}

void json_key(struct json_writer *json, const char *key)
{
    json_string(json, key);
    append(json, ":", 1);
}

/* The length of the valid UTF-8 sequence that starts at `text`, or 0: overlong forms, surrogates and values above
 * U+10FFFF are not valid. */
static size_t utf8_sequence(const unsigned char *text, size_t left)
{
    unsigned char lead = text[0];
    if (lead < 0x80)
        return 1;
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    unsigned char second = text[1];
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f))
        return 0;
    if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

static void append_escaped(struct json_writer *json, unsigned char byte)
{
    char escape[8];
    if (byte == '"' || byte == '\\')
        snprintf(escape, sizeof escape, "\\%c", byte);
    else
        snprintf(escape, sizeof escape, "\\u%04x", byte);
    append(json, escape, strlen(escape));
}

void json_string_bytes(struct json_writer *json, const char *bytes, size_t length)
{
    const unsigned char *text = (const unsigned char *)bytes;
    separate(json);
    append(json, "\"", 1);
    for (size_t i = 0; i < length;) {
        size_t sequence = utf8_sequence(text + i, length - i);
        if (sequence == 0)
            append(json, "\\ufffd", 6);
        else if (text[i] < 0x20 || text[i] == 0x7f || text[i] == '"' || text[i] == '\\')
            append_escaped(json, text[i]);
        else
            append(json, bytes + i, sequence);
        i += sequence ? sequence : 1;
    }
    append(json, "\"", 1);
}

void json_string(struct json_writer *json, const char *text)
{
    if (text)
        json_string_bytes(json, text, strlen(text));
    else
        json_null(json);
}

/* Formats one number or word as a value. */
#define APPEND_FORMATTED(json, ...)                                         \
    do {                                                                    \
        char formatted_[40];                                                \
        int length_ = snprintf(formatted_, sizeof formatted_, __VA_ARGS__); \
        separate(json);                                                     \
        append(json, formatted_, (size_t)length_);                          \
    } while (0)

void json_u64(struct json_writer *json, uint64_t value)
{
    APPEND_FORMATTED(json, "%llu", (unsigned long long)value);
}

void json_i64(struct json_writer *json, int64_t value)
{
    APPEND_FORMATTED(json, "%lld", (long long)value);
}

void json_bool(struct json_writer *json, bool value)
{
    APPEND_FORMATTED(json, "%s", value ? "true" : "false");
}

void json_null(struct json_writer *json)
{
    APPEND_FORMATTED(json, "null");
}

void json_thousandths(struct json_writer *json, uint64_t thousandths)
{
    APPEND_FORMATTED(json, "%llu.%03u", (unsigned long long)(thousandths / 1000), (unsigned)(thousandths % 1000));
}

void json_hex(struct json_writer *json, uint64_t value)
{
    APPEND_FORMATTED(json, "\"0x%llx\"", (unsigned long long)value);
}

void json_raw(struct json_writer *json, const char *bytes, size_t length)
{
    if (!length)
        return;
    separate(json);
    append(json, bytes, length);
}

void json_raw_piece(struct json_writer *json, const char *bytes, size_t length)
{
    append(json, bytes, length);
}
