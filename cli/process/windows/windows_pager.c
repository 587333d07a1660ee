/* windows_pager.c - replaces pager.c: a console of Windows scrolls, and Windows has no pager. */
#include "process/term.h"

bool pager_is_active(void)
{
    return false;
}

void pager_start(void)
{
}

void pager_end(void)
{
}
