/* fuzz_s3.c - fuzzes the answers of S3 in XML: the id of an upload. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "port/remote/s3.h"

/* Return a copy of the answer that ends with '\0', as an answer in memory does. */
static char *copy_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    char id[32] = "";
    char *xml = copy_of(data, size);
    (void)s;
    if (heft_s3_find_element(id, sizeof id, xml, "UploadId"))
        fuzz_require(*id && memchr(id, '\0', sizeof id) && strstr(xml, id));
    free(xml);
}

const fuzz_target fuzz_this = { .run = run };
