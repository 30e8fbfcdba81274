/*
 * Writes JSON into one growing, bounded buffer. Commas are the writer's business: the caller only says what comes next.
 * Nothing here fails half-way: past the limit the writer keeps still and `overflow` says so, so that the caller checks once.
 */
#ifndef SANDBUS_JSON_H
#define SANDBUS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {
    char *bytes; /* the text so far, not terminated */
    size_t length;
    size_t capacity;
    size_t limit;  /* the text never grows beyond this many bytes */
    bool overflow; /* something did not fit, or memory ran out: the text is not valid JSON */
};

/* Starts an empty text of at most `limit_bytes`. Allocates nothing yet. */
void json_init(struct json_writer *json, size_t limit_bytes);
void json_free(struct json_writer *json);

/* Containers. Inside an object call json_key before each value. */
void json_begin_object(struct json_writer *json);
void json_end_object(struct json_writer *json);
void json_begin_array(struct json_writer *json);
void json_end_array(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);

/* Values. A string is escaped; each byte that is not part of valid UTF-8 becomes U+FFFD. NULL becomes null. */
void json_string(struct json_writer *json, const char *text);
void json_string_bytes(struct json_writer *json, const char *bytes, size_t length);
void json_u64(struct json_writer *json, uint64_t value);
void json_i64(struct json_writer *json, int64_t value);
void json_bool(struct json_writer *json, bool value);
void json_null(struct json_writer *json);
/* A number with three decimals from a count of thousandths: 1500 becomes 1.500. */
void json_thousandths(struct json_writer *json, uint64_t thousandths);
/* "0x1f", as a string, since JSON readers lose bits above 2^53. */
void json_hex(struct json_writer *json, uint64_t value);
/* Text that is JSON already: one whole value, or whole members of the object or array that is open. */
void json_raw(struct json_writer *json, const char *bytes, size_t length);
/* The next piece of such a text that arrives in pieces: nothing is put in between. */
void json_raw_piece(struct json_writer *json, const char *bytes, size_t length);

#endif
