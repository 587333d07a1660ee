/* dump.h - an open file as text, the same for the same model however it was opened. */
#ifndef DUMP_H
#define DUMP_H
#include "heft_test.h"

enum {
    DUMP_MODEL = 0, /* names, types, shapes, parts, metadata, attributes but for ids of names */
    DUMP_ALL = 1    /* … those, where everything lies, and checksums */
};
/* malloc'ed text. */
char *heft_test_dump(const heft_file *f, int what);
void heft_assert_same_text(const char *a, const char *b);

/* Findings of heft_file_verify(), one a line. */
char *heft_test_findings(heft_verify_result *out, heft_status *st, const heft_file *f,
                         heft_error *err);

/* Reads every part in pieces, through heft_part_read() and heft_part_view(), which have to agree. */
heft_status heft_test_read_all(const heft_file *f, heft_error *err);
/* false for files whose compressed parts are broken, or of a kind that nobody here decodes. */
bool heft_test_is_readable(const heft_file *f);

#endif
