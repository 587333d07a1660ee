/* no_lora.c - `--lora` in a build without the module 'lora'. */
#include "models/adapters.h"
#include "options/command.h"

int adapters_open(adapters *a, const adapter_options *o, const session *s, const heft_file *f,
                  const char *path, bool allow_nan, heft_dtype block)
{
    (void)s, (void)f, (void)path, (void)allow_nan, (void)block;
    *a = (adapters){ .merged = NULL };
    return adapters_wanted(o) ? command_say_left_out("--lora", "lora") : CODE_DONE;
}

const heft_file *adapters_file(const adapters *a)
{
    (void)a;
    return NULL;
}

void adapters_print(outbuf *o, const adapters *a, const adapter_options *opt, const session *s,
                    bool as_json)
{
    (void)o, (void)a, (void)opt, (void)s, (void)as_json;
}

void adapters_release(adapters *a)
{
    *a = (adapters){ .merged = NULL };
}
