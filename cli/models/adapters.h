/* adapters.h - the model that a file is with adapters merged into it, for --lora. */
#ifndef HEFT_CLI_ADAPTERS_H
#define HEFT_CLI_ADAPTERS_H
#include <heft/lora.h>

#include "process/command_session.h"
#include "text/outbuf.h"

typedef struct adapter_options {
    opt_list list;      /* pairs: ADAPTER, SCALE or "" */
    bool peft_rounding; /* --peft-rounding */
} adapter_options;

typedef struct adapters {
    heft_lora *merged; /* NULL: none */
    heft_lora_adapter *all;
    heft_file **files;
    heft_settings **configs;
    size_t count;
    const char **paths; /* the model comes first */
} adapters;

/* Return the number of adapters that are asked for. */
static inline size_t adapters_wanted(const adapter_options *o)
{
    return o->list.count / 2;
}
/* Open the adapters, and merge them into `f`, which was opened from `path` or decoded from it;
 * block: see heft_lora_options.block_type. *a must be released, after an error, too. Does nothing
 * without --lora. Return an exit code. */
int adapters_open(adapters *a, const adapter_options *o, const session *s, const heft_file *f,
                  const char *path, bool allow_nan, heft_dtype block);
/* Return the merged model. */
const heft_file *adapters_file(const adapters *a);
/* Print what is merged into which tensor: a table, or one JSON document. */
void adapters_print(outbuf *o, const adapters *a, const adapter_options *asked, const session *s,
                    bool as_json);
void adapters_release(adapters *a);

#endif
