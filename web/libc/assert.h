/* assert.h - for xxhash.h: assertions are not compiled. */
#ifndef HEFT_WEB_ASSERT_H
#define HEFT_WEB_ASSERT_H

#define assert(condition) ((void)0)
#define static_assert _Static_assert

#endif
