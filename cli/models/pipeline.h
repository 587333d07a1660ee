/* pipeline.h - the class and the components of a pipeline of the diffusers library. */
#ifndef HEFT_CLI_PIPELINE_H
#define HEFT_CLI_PIPELINE_H
#include <heft/companion.h>

#include "models/model.h"

typedef struct pipeline {
    heft_settings *settings; /* NULL: the model is not a pipeline */
    heft_str class_name;
    heft_pipeline_component component[HEFT_PIPELINE_COMPONENTS];
    uint32_t count;
} pipeline;

/* Read model_index.json if that is the opened file. Return an exit code. */
int pipeline_read(pipeline *out, const heft_file *f, const char *path);
void pipeline_free(pipeline *p);
/* Return true if the opened file is the index of a pipeline. */
bool pipeline_is(const heft_file *f);
/* Write the lines "Components", or nothing. */
void pipeline_print(outbuf *o, const pipeline *p, const heft_file *f);
/* Write the member "pipeline", or nothing. */
void pipeline_json(json *j, const pipeline *p, const heft_file *f);

/* ---- what kind of model a file holds ---- */

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
