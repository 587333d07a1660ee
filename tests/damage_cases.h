/* damage_cases.h - every damaged version of a small file, by number. */
#ifndef DAMAGE_CASES_H
#define DAMAGE_CASES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum damage_kind {
    DAMAGE_BYTE,   /* a byte has a different value: 255 cases for each byte */
    DAMAGE_CUT,    /* the file is truncated: each length */
    DAMAGE_APPEND, /* 1 to 64 bytes are appended, with four contents */
    DAMAGE_FIELD,  /* an integer of header or index has one of 16 edge values */
    DAMAGE_PAIR,   /* two integers have edge values */
    DAMAGE_KINDS
} damage_kind;

enum { DAMAGE_APPENDED = 64, DAMAGE_EDGES = 16 };

/* An integer: `width` bytes, little-endian, big-endian or decimal digits. */
typedef struct damage_field {
    uint32_t at;
    uint8_t width, form;
} damage_field;

typedef struct damage_file {
    const uint8_t *bytes;
    size_t len;
    damage_field *fields; /* every integer of header and index */
    size_t field_count;
    uint32_t *pairs_of; /* numbers of the fields that DAMAGE_PAIR combines */
    size_t pairs_count;
} damage_file;

/* List the integers in the bytes that are not payload; is_payload has len elements. Release
 * `fields` and `pairs_of` with free(). */
void damage_list_fields(damage_file *d, const bool *is_payload);

/* Choose the fields for DAMAGE_PAIR. outcomes: the hash of the answer to each case of DAMAGE_FIELD,
 * 0 if the case was not run; intact: the hash for the intact file. Among overlapping fields with
 * equal outcomes the first is chosen. */
void damage_choose_pairs(damage_file *d, const uint32_t *outcomes, uint32_t intact);

/* Return the number of cases. */
uint64_t damage_cases(const damage_file *d, damage_kind kind);

/* Write case number `i` to out, of len + DAMAGE_APPENDED bytes; return the length of the damaged
 * file. */
size_t damage_apply(uint8_t *out, const damage_file *d, damage_kind kind, uint64_t i);

/* Describe case number `i`. */
void damage_describe(char *text, size_t size, const damage_file *d, damage_kind kind, uint64_t i);

#endif
