/* windows_pager.c - replaces pager.c: a console of Windows scrolls, and Windows has no pager. */
#include "pager.h"

void pager_disable(void)
{
}

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
