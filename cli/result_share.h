/* result_share.h - results of a command, computed in shares by several processes and joined. A
 * record has a row of 64-bit words for each row of the result, of which most are tensors. The first
 * lines say what the result depends on:
 *
 *   heft results 2 diff
 *   file HEX              id of the file
 *   with HEX              id of the second file, if there is one
 *   options --atol 0.01   options that change the results, or "none"
 *   tensors HEX           hash of the rows
 *   share 2 of 8
 *   rows 120 to 240 of 960, 4 words
 *   WORD WORD WORD WORD
 *   [OFFSET,BYTES,CRC]    CRCs of the bytes read, for each of the files
 *   sum HEX */
#ifndef HEFT_CLI_RESULT_SHARE_H
#define HEFT_CLI_RESULT_SHARE_H
#include <heft/share.h>

#include "checks.h"
#include "model.h"
#include "opt.h"

typedef struct result_row {
    uint32_t a, b;  /* tensors of the file and of the second file, or HEFT_NONE */
    uint64_t bytes; /* read to compute the row */
} result_row;

typedef struct result_share {
    const char *command;
    /* options as given: "I/N", the beginning of the names of records to write, and to join */
    const char *share_text, *out, *join;
    heft_share share; /* count 0: the whole result */
    /* set before result_share_open() */
    const heft_file *f, *other; /* other: a second file, or NULL */
    const char *path, *other_path;
    char options[160]; /* options that change the results; empty: none */
    uint32_t words;    /* number of words in a row */
    uint32_t rows;
    result_row (*row)(const void *ctx, uint32_t i);
    const void *ctx;
    const selection *chosen; /* set by result_share_set_tensors() */
    /* set by result_share_open() */
    uint64_t *before; /* bytes of all rows before row i */
    uint64_t tensors; /* hash of the rows */
    heft_hash ids[2];
} result_share;

/* The three options that fill the struct; i is below RESULT_SHARE_OPTIONS. */
enum { RESULT_SHARE_OPTIONS = 3 };
opt result_share_option(result_share *r, size_t i);
/* Check the options. Return an exit code. */
int result_share_prepare(result_share *r);
/* Take the selected tensors of a file as rows; chosen is borrowed. */
void result_share_set_tensors(result_share *r, const heft_file *f, const char *path,
                              const selection *chosen);
/* Call before the functions below. Return an exit code. */
int result_share_open(result_share *r);
void result_share_close(result_share *r); /* safe on a zeroed struct */
/* Get the rows of share `which` of `count`: consecutive rows of nearly equal bytes in total. */
void result_share_rows(const result_share *r, uint32_t which, uint32_t count, uint32_t *first,
                       uint32_t *end);
/* Write the record; words has those of the share's rows, crcs a line for each of the checks. Return
 * an exit code. */
int result_share_write(const result_share *r, const uint64_t *words, const outbuf *crcs);
/* Read all records into a malloc'ed array of the words of all rows, and compare the checksums over
 * several tensors. The checks were begun without own parts. Return an exit code. */
int result_share_join(const result_share *r, uint64_t **words, checks *const *joined,
                      const char *const *paths, size_t count);

/* ---- records with other lines than words ---- */

/* Begin a record in memory; write the record after the caller has added lines. */
void result_share_begin(const result_share *r, outbuf *text);
int result_share_end(const result_share *r, outbuf *text);
/* Read a record. *count: number of shares, 0 before the first record. body: the lines between the
 * first lines and the last line. Release with text_free(*text), also after an error. Return an exit
 * code. */
int result_share_read(const result_share *r, uint32_t which, uint32_t *count, heft_str *text,
                      heft_str *body);
/* Print the error of a damaged record; return the exit code. */
int result_share_damaged(const result_share *r, uint32_t which);

#endif
