/* sink_file.h - the steps in which a file appears, for sets of files that appear together. */
#ifndef HEFT_SINK_FILE_H
#define HEFT_SINK_FILE_H
#include "port/port.h"

/* Whether it is one that heft_sink_file() made for a regular file. */
bool heft_sink_is_file(const heft_sink *s);
/* On disk, where that is asked for. */
heft_status heft_file_sink_settle(heft_sink *s, heft_error *err);
/* Before a file is replaced: so that heft_file_sink_undo() can bring it back. */
heft_status heft_file_sink_keep_old(heft_sink *s, heft_error *err);
/* Under its name; the sink stays. */
heft_status heft_file_sink_appear(heft_sink *s, heft_error *err);
/* As it was before heft_file_sink_appear(). */
void heft_file_sink_undo(heft_sink *s);

#endif
