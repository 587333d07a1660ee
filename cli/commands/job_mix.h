/* job_mix.h - --quantize with a mix of GGUF: the types of all tensors, as casts of the job. */
#ifndef HEFT_CLI_JOB_MIX_H
#define HEFT_CLI_JOB_MIX_H
#include <heft/mix.h>

#include "options/opt.h"
#include "text/outbuf.h"

typedef struct job_mix {
    /* options as given */
    opt_list types; /* REGEX=TYPE */
    const char *embedding, *output, *imatrix;
    bool pure, keeps_output;
    /* derived from the options */
    heft_mix_info info; /* name NULL: no mix is asked for */
    struct type_rule *rules;
    heft_importance *importance;
    heft_mix *mix;
} job_mix;

struct job;
/* Find out whether --quantize names a mix, and check its options. Return an exit code. */
int job_mix_prepare(struct job *j);
/* Apply the mix to the model that is converted: casts, importance and metadata of the job.  Print
 * what differs from the mix. Return an exit code. */
int job_mix_choose(struct job *j, const heft_file *f);
/* Print the table of types and sizes of a dry run, if a mix is asked for. */
void job_mix_print(outbuf *o, struct job *j, const heft_file *f);
void job_mix_release(struct job *j);

#endif
