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

#endif
