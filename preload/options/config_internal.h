/* config_internal.h: shared by config.c, config_parse.c and config_report.c only.
 *
 * The table of options is an expansion of options.def; a value is read and written through its
 * entry. Filled by the constructor and at arm time, each on one thread; read-only afterwards.
 */
#ifndef GB_CONFIG_INTERNAL_H
#define GB_CONFIG_INTERNAL_H

#include "options/config.h"

enum gb_option_kind {
    GB_KIND_BOOL,
    GB_KIND_ENUM,
    GB_KIND_SIZE,
    GB_KIND_TIME,
    GB_KIND_SHARE,
    GB_KIND_TEXT
};
enum gb_config_source { GB_SOURCE_DEFAULT, GB_SOURCE_ENVIRONMENT, GB_SOURCE_FILE };

enum {
#define GB_OPTION_BOOL(field, env, fallback, help)           GB_OPTION_INDEX_##field,
#define GB_OPTION_ENUM(field, env, fallback, choices, help)  GB_OPTION_INDEX_##field,
#define GB_OPTION_SIZE(field, env, fallback, min, max, help) GB_OPTION_INDEX_##field,
#define GB_OPTION_TIME(field, env, fallback, min, max, help) GB_OPTION_INDEX_##field,
#define GB_OPTION_SHARE(field, env, fallback, help)          GB_OPTION_INDEX_##field,
#define GB_OPTION_TEXT(field, env, fallback, help)           GB_OPTION_INDEX_##field,
#include "options/options.def"
    GB_OPTION_COUNT
};

struct gb_option {
    const char *name;
    enum gb_option_kind kind;
    size_t offset;       /* in struct gb_config */
    uint64_t min, max;   /* SIZE and TIME */
    const char *choices; /* ENUM: "auto,off,on" */
};
extern const struct gb_option gb_options[GB_OPTION_COUNT];

/* What was wrong, kept until it may be said. Texts are cut; they are cleaned when printed. */
enum gb_complaint_kind {
    GB_COMPLAINT_VALUE,    /* option, text: the value */
    GB_COMPLAINT_UNKNOWN,  /* text: the name */
    GB_COMPLAINT_LINE,     /* text: the line; no NAME=value */
    GB_COMPLAINT_ENV_ONLY, /* option; not allowed in the file */
    GB_COMPLAINT_TWICE,    /* option; set twice in the file */
    GB_COMPLAINT_FILE,     /* text: why the file could not be read */
};
struct gb_complaint {
    enum gb_complaint_kind kind;
    const struct gb_option *option;
    int line; /* of the config file; 0: the environment */
    char text[64];
};
#define GB_COMPLAINTS_MAX 16
extern struct gb_complaint gb_complaints[GB_COMPLAINTS_MAX];
extern unsigned gb_complaint_count; /* may exceed the maximum: those were not kept */

void gb_config_complain(enum gb_complaint_kind kind, const struct gb_option *option, int line,
                        const char *text, size_t length);
extern enum gb_config_source gb_config_sources[GB_OPTION_COUNT];

/* The option of that name, or NULL. */
const struct gb_option *gb_config_find(const char *name, size_t length);
/* Checks a value against its option and, where `apply`, puts it in force. False: a bad value. */
bool gb_config_set(const struct gb_option *option, const char *value, bool apply);
/* config_parse.c */
bool gb_config_parse_choice(const char *choices, const char *text, int *out);
/* Texts that parse back to the same value. */
void gb_config_format_size(uint64_t bytes, char *out, size_t size);
void gb_config_format_share(uint64_t every, char *out, size_t size);
void gb_config_format_time(uint64_t ns, char *out, size_t size);
/* The known name nearest to an unknown one, or NULL when none is near. */
const char *gb_config_nearest(const char *name);
/* config_report.c, for tests: applies the text of a config file. */
void gb_config_apply_file(char *text, size_t length);

#endif
