/* url_settings.h - settings of the user for requests, trimmed and checked. */
#ifndef HEFT_PORT_REMOTE_URL_SETTINGS_H
#define HEFT_PORT_REMOTE_URL_SETTINGS_H
#include "port/port.h"

/* Copy a setting to `out`, terminated and without spaces and line feeds at both ends.  The text is
 * empty if there is no such setting.  origin: the name of the setting in messages.
 *   HEFT_E_ARGUMENT  a space, a control character, or a character that is not ASCII within
 *   HEFT_E_LIMIT     the setting has `size` bytes or more */
heft_status heft_setting_copy(char *out, size_t size, heft_str value, const char *origin,
                              heft_error *err);
heft_status heft_setting_of_variable(char *out, size_t size, const char *name, heft_error *err);
/* The whole file is the setting. */
heft_status heft_setting_of_file(char *out, size_t size, const char *path, heft_error *err);
/* Look up a key in a section of a file of AWS: "default", "profile NAME". */
heft_status heft_setting_of_profile(char *out, size_t size, const char *path, const char *section,
                                    const char *key, heft_error *err);

#endif
