/* config.h: the options of options.def as one struct, filled once in the constructor.
 *
 * Parsing reads the environment only through secure_getenv, allocates nothing and prints nothing;
 * complaints are kept and said when the process arms (gb_config_report). A bad value keeps the
 * default. GPUBOOST_CONFIG=file gives values with lower precedence than the environment; it is
 * read at arm time, since the constructor opens no file. What decides before that (GPUBOOST_
 * DISABLE, _ONLY, _NOT, _CONFIG) is refused in the file.
 */
#ifndef GB_CONFIG_H
#define GB_CONFIG_H

#include "base/gb.h"

#define GB_CONFIG_TEXT_BYTES 1024 /* longest text value, its end included */

enum gb_profile { GB_PROFILE_OBSERVE, GB_PROFILE_SAFE, GB_PROFILE_MAX };
enum gb_switch { GB_SWITCH_AUTO, GB_SWITCH_OFF, GB_SWITCH_ON, GB_SWITCH_WIDE /* elide only */ };

struct gb_config {
#define GB_OPTION_BOOL(field, env, fallback, help)           bool field;
#define GB_OPTION_ENUM(field, env, fallback, choices, help)  int field;
#define GB_OPTION_SIZE(field, env, fallback, min, max, help) uint64_t field;
#define GB_OPTION_TIME(field, env, fallback, min, max, help) uint64_t field;
#define GB_OPTION_SHARE(field, env, fallback, help)          uint64_t field;
#define GB_OPTION_TEXT(field, env, fallback, help)           const char *field;
#include "options/options.def"
};

extern struct gb_config gb_config;

/* Constructor: environment only. Everything off under AT_SECURE. */
void gb_config_load(void);
/* At arm time: the config file, complaints (bad value, unknown GPUBOOST_* with the nearest name),
 * and the SHOW_CONFIG block. */
void gb_config_report(void);
/* Is a policy on, given its own switch and the profile it needs? */
bool gb_config_policy_on(enum gb_switch own, enum gb_profile needs);
/* One option as text that parses back to the same value, and "default", "environment" or "file";
 * false behind the last. For SHOW_CONFIG and the record. */
struct gb_config_entry {
    const char *name;
    const char *source;
    char value[GB_CONFIG_TEXT_BYTES];
};
bool gb_config_entry(unsigned index, struct gb_config_entry *out);
/* Strict parsers, for tests: true on success, *out untouched otherwise. */
bool gb_config_parse_size(const char *text, uint64_t *out_bytes); /* "64M", "1GiB", "4096" */
bool gb_config_parse_time(const char *text,
                          uint64_t *out_ns); /* "80us", "2ms", "1s"; no unit is an error */
bool gb_config_parse_share(const char *text, uint64_t *out_every); /* "1/100" as 100, "off" as 0 */
bool gb_config_parse_bool(const char *text, bool *out); /* 0/1 on/off yes/no true/false */

#endif
