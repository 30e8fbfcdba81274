#include "sha256.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

/* Expands one 64-byte block into the 64 words of the message schedule. */
static void schedule(uint32_t words[64], const unsigned char block[64])
{
    for (unsigned i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t near = words[i - 2], far = words[i - 15];
        uint32_t mixed_near = rotate_right(near, 17) ^ rotate_right(near, 19) ^ near >> 10;
        uint32_t mixed_far = rotate_right(far, 7) ^ rotate_right(far, 18) ^ far >> 3;
        words[i] = words[i - 16] + mixed_far + words[i - 7] + mixed_near;
    }
}

static void compress(uint32_t state[8], const unsigned char block[64])
{
    uint32_t words[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    schedule(words, block);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t sum_e = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t first = h + sum_e + ((e & f) ^ (~e & g)) + round_constants[i] + words[i];
        uint32_t sum_a = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t second = sum_a + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_init(struct sha256 *hash)
{
    *hash = (struct sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(struct sha256 *hash, const void *bytes, size_t length)
{
    const unsigned char *next = bytes;
    size_t held = hash->length_bytes % sizeof hash->block;
    hash->length_bytes += length;
    while (length) {
        size_t take = sizeof hash->block - held;
        if (held == 0 && length >= sizeof hash->block) {
            compress(hash->state, next);
        } else {
            take = take < length ? take : length;
            memcpy(hash->block + held, next, take);
            held += take;
            if (held == sizeof hash->block) {
                compress(hash->state, hash->block);
                held = 0;
            }
        }
        next += take;
        length -= take;
    }
}

void sha256_final_hex(struct sha256 *hash, char hex[SHA256_HEX_SIZE])
{
    static const unsigned char padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    uint64_t length_bits = hash->length_bytes * 8;
    size_t held = hash->length_bytes % 64;
    unsigned char tail[8];
    for (unsigned i = 0; i < 8; i++)
        tail[i] = (unsigned char)(length_bits >> (56 - 8 * i));
    sha256_update(hash, padding, held < 56 ? 56 - held : 120 - held);
    sha256_update(hash, tail, sizeof tail);
    for (unsigned i = 0; i < 64; i++)
        hex[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 0xf];
    hex[64] = 0;
}
