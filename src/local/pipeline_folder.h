/* pipeline_folder.h - open the folder of a pipeline: model_index.json, and a folder for each
 * component. */
#ifndef HEFT_PORT_PIPELINE_FOLDER_H
#define HEFT_PORT_PIPELINE_FOLDER_H
#include "folder/folder_choice.h"
#include "port/port.h"

#define HEFT_PIPELINE_INDEX "model_index.json"

/* Return true if the last component of the path is the name of the index. */
bool heft_is_pipeline_index(const char *path);

/* The place of a pipeline: a folder, or a repository of the hub. */
typedef struct heft_pipeline_store {
    /* Open model_index.json; *out stays NULL after HEFT_OK if there is none. */
    heft_status (*open_index)(heft_source **out, void *ctx, heft_error *err);
    /* Open the model of a component.  HEFT_E_NOTFOUND: the component's folder does not exist. */
    heft_status (*open_component)(heft_file **out, void *ctx, const char *name,
                                  const heft_open_options *opt, heft_error *err);
    /* List the files of the folder itself.  The listing is initialised, even after an error. */
    heft_status (*list)(heft_folder_listing *l, void *ctx, heft_error *err);
    void *ctx;
} heft_pipeline_store;

/* Open a pipeline.  *out stays NULL after HEFT_OK if the store has no pipeline, or if no component
 * opens while other weights do.  opt is complete. */
heft_status heft_pipeline_open(heft_file **out, const heft_pipeline_store *store,
                               const heft_open_options *opt, heft_error *err);

#endif
