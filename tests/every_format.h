/* every_format.h - checks that every sample must pass. */
#ifndef FORMATS_H
#define FORMATS_H
#include "dump.h"
#include "samples.h"

/* formats_damage.c */
void check_truncated(const sample *s);
void check_damaged(const sample *s);
void check_memory(const sample *s);

/* formats_write.c */
void check_rewritten(const sample *s);
void check_other_formats(const sample *s);
void check_sinks(const sample *s);
void check_streams(const sample *s);

/* formats_edit.c */
void check_edited(const sample *s);
void check_edited_damage(const sample *s);

/* Open a sample from memory; return the status of heft_file_open(). */
heft_status open_sample(heft_file **out, const sample *s, const heft_host *host, heft_error *err);

#endif
