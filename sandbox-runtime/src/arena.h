/*
 * Memory for the parts of one job's specification, given back all at once. It lies in pages of its own that forked
 * children do not get (MADV_DONTFORK) unless the job is theirs, so no job's child carries another job's arguments.
 */
#ifndef SANDBUS_ARENA_H
#define SANDBUS_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks;
};

/* An arena in memory that the caller shares with one child, which sees what is put there later, at the same addresses. Only what
 * fits: arena_is_shared tells. */
bool arena_open_shared(struct arena *arena, size_t size);
bool arena_is_shared(const struct arena *arena);
/* Zeroed, aligned for any object. NULL when memory is out. */
void *arena_allocate(struct arena *arena, size_t size);
char *arena_copy(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena);
/* Whether children forked from now on get this memory. A new arena's memory they do not get. */
void arena_share_with_children(struct arena *arena, bool shared);

#endif
