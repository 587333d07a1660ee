/* no_sandbox.c - replaces sandbox.c on systems other than Linux, and under sanitizers: a sanitizer
 * starts a symbolizer and traces the process. */
#include "options/command.h"

void sandbox_begin(void)
{
}

void sandbox_enter(const session *s)
{
    (void)s;
}
