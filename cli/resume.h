/* resume.h - `heft convert --resume`: keep the downloaded bytes of an input on a server. */
#ifndef HEFT_CLI_RESUME_H
#define HEFT_CLI_RESUME_H
#include "job.h"

/* Refuse --resume where nothing can be kept. Return an exit code. */
int resume_check(const job *j, const char *in);
/* Open the input with the bytes that an earlier command has kept beside the output. */
heft_status resume_open(heft_file **out, const job *j, const char *in, heft_error *err);
/* Remove the files with downloaded bytes after success, and if the download is no valid model;
 * after any other failure print that the files are kept. The input has been opened and closed.
 * Return an exit code. */
int resume_end(const job *j, const char *in, int code);

#endif
