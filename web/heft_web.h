/* heft_web.h - what the files of the WebAssembly module share.
 *
 * The module is the core with functions that JavaScript calls.  Numbers of 64 bits are passed as
 * double, exact up to 2^53; results of several numbers or texts are left in `web_result`, whose
 * members core.mjs reads by their offsets. */
#ifndef HEFT_WEB_H
#define HEFT_WEB_H
#include <heft/heft_ext.h>
#include <string.h>

#define WEB_EXPORT(name) __attribute__((export_name(#name), used))
#define WEB_IMPORT(name) __attribute__((import_module("env"), import_name(#name)))

enum { WEB_NUMBERS = 8, WEB_TEXTS = 4 };

typedef struct web_results {
    double number[WEB_NUMBERS];
    struct {
        const void *ptr;
        uint32_t len;
    } text[WEB_TEXTS];
} web_results;

typedef struct web_model {
    heft_file *file;
    heft_shard_folder folder;
    uint32_t number; /* of JavaScript: the source of the model's first file */
    heft_vocab *vocab;
} web_model;

extern web_results web_result;
extern heft_error web_error;

extern const heft_host web_host;
extern const heft_allocator web_allocator;
extern const heft_codec web_inflate;
extern const heft_digest web_sha256, web_xxh3;

/* Compute the tables of CRCs; call before a model is opened. */
void web_crc_tables(void);
/* Make the code books of block types; call before a model is opened. */
void web_block_grids(void);
/* Report a failure outside of the core; return st. */
heft_status web_fail(heft_error *err, heft_status st, const char *message);
void web_set_text(uint32_t i, heft_str s);
/* Return a 64-bit number as a double; NaN for HEFT_UNKNOWN_LENGTH and HEFT_NOWHERE. */
double web_number(uint64_t v);

/* Progress that the page may stop. */
bool web_progress(void *ctx, uint64_t done, uint64_t total);

#endif
