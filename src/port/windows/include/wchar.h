/* wchar.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_WCHAR_H
#define HEFT_WINDOWS_WCHAR_H
#include_next <wchar.h>

#include "../posix.h"

#define mbrtowc windows_mbrtowc
#define wcwidth windows_wcwidth

#endif
