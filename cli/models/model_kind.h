/* model_kind.h - what kind of model a file holds, as metadata, config.json or tensor names tell. */
#ifndef HEFT_CLI_MODEL_KIND_H
#define HEFT_CLI_MODEL_KIND_H
#include "models/model.h"

typedef struct model_kind {
    char kind[128];     /* "llama", "LlamaForCausalLM", "GPT-2"; empty: not known */
    const char *source; /* "metadata", "config", "names" or "pipeline" */
    char evidence[256]; /* metadata key, key of config.json, or tensor name; perhaps cut */
    /* adapter_config.json of an adapter: "LORA", and the name of the changed model; perhaps cut */
    char adapter_type[64], adapter_base[256];
    const char *mix; /* "q4_k_m", as general.file_type of a GGUF file says; or NULL */
} model_kind;

/* Find the kind. A config.json that is not JSON is a warning. Return an exit code. */
int model_kind_find(model_kind *out, const heft_file *f, const char *path);
/* Write the lines "Model" and "Mix", or nothing if the kind is not known. */
void model_kind_print(outbuf *o, const model_kind *m);
/* Write the member "model", or nothing if the kind is not known. */
void model_kind_json(json *j, const model_kind *m);

#endif
