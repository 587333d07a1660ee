/* fuzz_s3.c - fuzzes the answers of S3 in XML: the lists of parts and of objects, and the id of an
 * upload. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "port/remote/s3.h"

enum { PARTS = 20 };

/* Return a copy of the answer that ends with '\0', as an answer in memory does. */
static char *copy_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Read the answer as pages of a list of parts, until a page is the last or is refused. */
static void read_parts(const uint8_t *data, size_t size)
{
    heft_s3_stored_part parts[PARTS];
    uint32_t marker = 0, before;
    heft_status st;
    memset(parts, 0, sizeof parts);
    do {
        heft_error err = fuzz_no_error();
        char *xml = copy_of(data, size);
        before = marker;
        st = heft_s3_read_parts(parts, PARTS, xml, &marker, &err);
        free(xml);
        if (st)
            fuzz_require_error(st, &err);
        else
            fuzz_require(!marker || (marker > before && marker <= HEFT_S3_MAX_PARTS));
    } while (!st && marker);
    for (size_t i = 0; i < PARTS; i++)
        fuzz_require(memchr(parts[i].etag, '\0', sizeof parts[i].etag));
}

static void check_name(void *ctx, const char *name)
{
    size_t *bytes = ctx;
    fuzz_require(!strchr(name, '/'));
    *bytes += strlen(name);
}

static void read_names(const uint8_t *data, size_t size)
{
    char token[64];
    size_t bytes = 0;
    heft_error err = fuzz_no_error();
    char *xml = copy_of(data, size);
    heft_status st = heft_s3_read_names(xml, token, sizeof token, check_name, &bytes, &err);
    free(xml);
    if (st)
        fuzz_require_error(st, &err);
    else
        fuzz_require(bytes <= size && memchr(token, '\0', sizeof token));
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    char id[32] = "";
    char *xml = copy_of(data, size);
    (void)s;
    if (heft_s3_find_element(id, sizeof id, xml, "UploadId"))
        fuzz_require(*id && memchr(id, '\0', sizeof id) && strstr(xml, id));
    free(xml);
    read_parts(data, size);
    read_names(data, size);
}

const fuzz_target fuzz_this = { .run = run };
