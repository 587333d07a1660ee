/* opened_container.h - arrays of a file that another library reads, through heft_host.open_hdf5. */
#ifndef HEFT_OPENED_CONTAINER_H
#define HEFT_OPENED_CONTAINER_H
#include "core/read/file.h"

/* Implement heft_window.container: open the container once, for all attempts to parse the file. */
heft_status heft_file_container(heft_window *in, const heft_container **out,
                                const heft_packed_range *where);
/* Return the source of the bytes that do not lie in the file as they are: the content of a deflated
 * container, then the decoded arrays.  NULL: there are none.  Borrowed. */
heft_source *heft_opened_container_source(heft_opened_container *o);

#endif
