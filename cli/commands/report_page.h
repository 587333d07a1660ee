/* report_page.h - the page of `heft report`, before and after its data. tools/embed_page.py makes
 * the definitions from the files in cli/report. */
#ifndef HEFT_CLI_REPORT_PAGE_H
#define HEFT_CLI_REPORT_PAGE_H
#include <stddef.h>

extern const unsigned char report_head[], report_tail[];
extern const size_t report_head_bytes, report_tail_bytes;

#endif
