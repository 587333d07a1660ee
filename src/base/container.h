/* container.h - the arrays of a file that the host's library reads, for parsers: see
 * heft_window.container and heft_container. */
#ifndef HEFT_BASE_CONTAINER_H
#define HEFT_BASE_CONTAINER_H
#include <heft/heft_ext.h>

#include "base/cursor.h"

#endif
