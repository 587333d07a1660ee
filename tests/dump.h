/* dump.h - the content of an open file as text, which does not depend on how the file was
 * opened. */
#ifndef DUMP_H
#define DUMP_H
#include "heft_test.h"

enum {
    DUMP_MODEL = 0, /* tensors, parts, vocabulary and metadata, sorted by name */
    DUMP_ALL = 1    /* also version, attributes, offsets and checksums, in file order */
};
/* Return malloc'ed text. */
char *heft_test_dump(const heft_file *f, int mode);
void heft_assert_same_text(const char *a, const char *b);

/* Return the findings of heft_file_verify(), a line for each, as malloc'ed text. */
char *heft_test_findings(heft_verify_result *out, heft_status *st, const heft_file *f,
                         heft_error *err);

/* Read every part in chunks; assert that heft_part_read() and heft_part_view() agree. */
heft_status heft_test_read_all(const heft_file *f, heft_error *err);
/* Return false if a compressed part is damaged, this build cannot decode the encoding, or a shard
 * is missing. */
bool heft_test_is_readable(const heft_file *f);

#endif
