/* notices.h - print the warnings found while a file was opened. */
#ifndef HEFT_CLI_NOTICES_H
#define HEFT_CLI_NOTICES_H
#include <heft/heft.h>

/* Print the warnings about an open file and, if `notes`, its notes; without `left_out`, none about
 * content that is left out, which is reported as a loss. */
void notices_say(const heft_file *f, const char *path, bool notes, bool left_out);

#endif
