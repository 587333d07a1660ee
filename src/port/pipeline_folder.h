/* pipeline_folder.h - open the folder of a pipeline: model_index.json, and a folder for each
 * component. */
#ifndef HEFT_PIPELINE_FOLDER_H
#define HEFT_PIPELINE_FOLDER_H
#include "port/port.h"

/* Open the model in the folder of a component.  HEFT_E_NOTFOUND: there is no weight file. */
typedef heft_status (*heft_component_opener)(heft_file **out, const char *folder, const char *name,
                                             const heft_open_options *opt, heft_error *err);

/* Return true for the path of a file with the name of the index of a pipeline. */
bool heft_is_pipeline_index(const char *path);

/* Open the folder as a pipeline.  *out stays NULL after HEFT_OK if the folder has no
 * model_index.json, or has only weights that do not belong to components. */
heft_status heft_pipeline_folder_open(heft_file **out, const char *path, heft_component_opener open,
                                      const heft_open_options *opt, heft_error *err);

#endif
