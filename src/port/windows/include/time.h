/* time.h - gmtime_r(). */
#ifndef HEFT_WINDOWS_TIME_H
#define HEFT_WINDOWS_TIME_H
#include_next <time.h>

#define gmtime_r windows_gmtime_r
struct tm *windows_gmtime_r(const time_t *t, struct tm *out);

#endif
