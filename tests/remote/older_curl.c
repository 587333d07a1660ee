/* older_curl.c - a library named like libcurl that lacks functions, as a release of 2020 does. */
const char *curl_version(void);
const char *curl_version(void)
{
    return "libcurl/7.60.0";
}
