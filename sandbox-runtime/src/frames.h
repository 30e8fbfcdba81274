/*
 * The frames of `launcher serve`: a header of 16 bytes, then the payload. All integers are unsigned and little-endian.
 *
 *   0  4  length of the payload
 *   4  1  type
 *   5  3  zero
 *   8  8  number of the job; 0 in frames that are about none
 *
 * frame_table has a row for each type: who sends it, and the least and the most bytes of its payload. README.md says what the
 * payloads are. This file only knows bytes: it does no input or output and keeps nothing.
 */
#ifndef SANDBUS_FRAMES_H
#define SANDBUS_FRAMES_H

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    FRAMES_VERSION = 1,
    FRAME_HEADER_SIZE = 16,
    FRAME_BYTES_MAX = 64 * 1024,       /* of a job's streams in one frame */
    FRAME_START_MAX = 2 * 1024 * 1024, /* the words of a job */
    FRAME_WORDS_MAX = 128 * 1024,      /* their number */
    FRAME_RESULT_MAX = 32 * 1024 * 1024,
};

enum frame_type {
    FRAME_START = 1,
    FRAME_INPUT = 2,
    FRAME_CREDIT = 3,
    FRAME_CANCEL = 4,
    FRAME_DISCARD = 5,
    FRAME_HELLO = 16,
    FRAME_STDOUT = 17,
    FRAME_STDERR = 18,
    FRAME_INPUT_CREDIT = 19,
    FRAME_RESULT = 20,
    FRAME_ERROR = 21,
};

struct frame_header {
    uint32_t length;
    uint8_t type;
    uint64_t job;
};

/* The payload of CREDIT. */
struct frame_credit {
    uint32_t stream; /* 1 standard output, 2 standard error */
    uint32_t bytes;
};

void frame_write_header(unsigned char bytes[FRAME_HEADER_SIZE], const struct frame_header *header);
void frame_write_u32(unsigned char bytes[4], uint32_t number);

/* Reads the header of a frame that a client sent. False with a fault that names what is wrong with it. */
bool frame_read_header(const unsigned char bytes[FRAME_HEADER_SIZE], struct frame_header *header, struct fault *fault);
bool frame_read_credit(const unsigned char *payload, struct frame_credit *credit, struct fault *fault);
/* Splits the payload of START into its words, each ended by a zero byte. `words` has room for FRAME_WORDS_MAX + 1. */
bool frame_read_words(char *payload, size_t length, char **words, int *count, struct fault *fault);

/* A line for each type of frame, as the manual has it. */
void frames_print_help(FILE *to);

#endif
