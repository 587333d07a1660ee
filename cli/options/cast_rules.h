/* cast_rules.h - the option --cast [GLOB:][FROM=]DTYPE, or [GLOB=]DTYPE, which may be repeated. */
#ifndef HEFT_CLI_CAST_RULES_H
#define HEFT_CLI_CAST_RULES_H
#include "models/model.h"
#include "options/opt.h"

typedef struct cast_rule {
    char *glob;      /* NULL matches every tensor */
    heft_dtype from; /* HEFT_UNTYPED: any */
    heft_dtype to;
} cast_rule;

typedef struct cast_rules {
    opt_list args;
    cast_rule *items; /* one per argument */
    /* The file and the quantised tensors of the file: a rule for all floats takes all parts of
     * quantised tensors, so that the conversion refuses to cast. schemes NULL: none. */
    const heft_file *f;
    const heft_schemes *schemes;
    /* The output is a GGUF file that llama.cpp loads: tensors that it needs in f32 stay so. */
    bool is_for_ggml;
} cast_rules;

/* Print that the element type is unknown, with the types that tensors can be cast to; return
 * CODE_USAGE. */
int say_unknown_dtype(const char *cmd, const char *text);
/* Parse the arguments. Return an exit code; cmd is the command named in the error line. */
int cast_rules_prepare(cast_rules *c, const char *cmd);
void cast_rules_release(cast_rules *c);
/* Return the type that the first matching rule gives the tensor, or HEFT_UNTYPED. A rule without a
 * pattern and a source type, but with a floating-point target, takes floating-point tensors only.
 * What llama.cpp needs in f32 becomes f32, if is_for_ggml is set.
 * *no_memory is set if a match could not be tested. */
heft_dtype cast_rules_find(bool *no_memory, const cast_rules *c, const heft_tensor *t);
/* Report rules that no tensor matches, and those that name a tensor which llama.cpp needs in f32.
 * Print how many tensors are not floating-point, or needed in f32, and therefore keep their
 * types. */
void cast_rules_check(unmatched *u, const cast_rules *c);

#endif
