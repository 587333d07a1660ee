/* no_lora.c - `--lora` and `--extract-lora` in a build without the module 'lora'. */
#include "models/adapters.h"
#include "models/extracted.h"
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

void adapters_print(outbuf *o, const adapters *a, const adapter_options *asked, const session *s,
                    bool as_json)
{
    (void)o, (void)a, (void)asked, (void)s, (void)as_json;
}

void adapters_release(adapters *a)
{
    *a = (adapters){ .merged = NULL };
}

int extracted_open(extracted *x, const extract_options *o, const session *s, const heft_file *f,
                   const char *path)
{
    (void)s, (void)f, (void)path;
    *x = (extracted){ .plan = NULL };
    return o->rank ? command_say_left_out("--extract-lora", "lora") : CODE_DONE;
}

const heft_file *extracted_file(const extracted *x)
{
    (void)x;
    return NULL;
}

int extracted_end(const extracted *x, const session *s, const char *folder, bool force,
                  bool no_sync)
{
    (void)x, (void)s, (void)folder, (void)force, (void)no_sync;
    return CODE_DONE;
}

void extracted_print(outbuf *o, const extracted *x, const session *s, bool as_json)
{
    (void)o, (void)x, (void)s, (void)as_json;
}

void extracted_release(extracted *x)
{
    *x = (extracted){ .plan = NULL };
}
