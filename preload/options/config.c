/* config.c: the options in force, from the environment. See config.h for the rules.
 *
 * One pass over the environment looks at names only; values of known names are read through
 * secure_getenv. Under AT_SECURE (set-user-ID, file capabilities) the library stays inert whatever
 * the environment says. Texts are copied: programs that set their process title overwrite the
 * block in which the environment lay at the start.
 */
#include "options/config_internal.h"

#include "base/text.h"
#include "options/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct gb_config gb_config;
enum gb_config_source gb_config_sources[GB_OPTION_COUNT];
struct gb_complaint gb_complaints[GB_COMPLAINTS_MAX];
unsigned gb_complaint_count;

static char texts[GB_OPTION_COUNT][GB_CONFIG_TEXT_BYTES];

#define AT(field) offsetof(struct gb_config, field)
const struct gb_option gb_options[GB_OPTION_COUNT] = {
#define GB_OPTION_BOOL(field, env, fallback, help) {env, GB_KIND_BOOL, AT(field), 0, 0, NULL},
#define GB_OPTION_ENUM(field, env, fallback, choices, help)                                        \
    {env, GB_KIND_ENUM, AT(field), 0, 0, choices},
#define GB_OPTION_SIZE(field, env, fallback, min, max, help)                                       \
    {env, GB_KIND_SIZE, AT(field), min, max, NULL},
#define GB_OPTION_TIME(field, env, fallback, min, max, help)                                       \
    {env, GB_KIND_TIME, AT(field), min, max, NULL},
#define GB_OPTION_SHARE(field, env, fallback, help) {env, GB_KIND_SHARE, AT(field), 0, 0, NULL},
#define GB_OPTION_TEXT(field, env, fallback, help)  {env, GB_KIND_TEXT, AT(field), 0, 0, NULL},
#include "options/options.def"
};

static const struct gb_config defaults = {
#define GB_OPTION_BOOL(field, env, fallback, help)           .field = fallback,
#define GB_OPTION_ENUM(field, env, fallback, choices, help)  .field = fallback,
#define GB_OPTION_SIZE(field, env, fallback, min, max, help) .field = fallback,
#define GB_OPTION_TIME(field, env, fallback, min, max, help) .field = fallback,
#define GB_OPTION_SHARE(field, env, fallback, help)          .field = fallback,
#define GB_OPTION_TEXT(field, env, fallback, help)           .field = fallback,
#include "options/options.def"
};

/* Names with our prefix that belong to the build and the scripts, not to this library. */
static const char *const not_ours[] = {"GPUBOOST_PYTHON", "GPUBOOST_LIBRARY"};

void gb_config_complain(enum gb_complaint_kind kind, const struct gb_option *option, int line,
                        const char *text, size_t length)
{
    if (gb_complaint_count++ >= GB_COMPLAINTS_MAX)
        return;
    struct gb_complaint *c = &gb_complaints[gb_complaint_count - 1];
    *c = (struct gb_complaint){.kind = kind, .option = option, .line = line};
    if (length >= sizeof c->text) {
        length = sizeof c->text - 4;
        memcpy(c->text + length, "...", 4);
    }
    memcpy(c->text, text, length);
}

const struct gb_option *gb_config_find(const char *name, size_t length)
{
    for (size_t i = 0; i < GB_OPTION_COUNT; i++)
        if (strncmp(gb_options[i].name, name, length) == 0 && gb_options[i].name[length] == 0)
            return &gb_options[i];
    return NULL;
}

static bool parse_number(const struct gb_option *o, const char *value, uint64_t *out)
{
    uint64_t n;
    bool ok =
        o->kind == GB_KIND_SIZE ? gb_config_parse_size(value, &n) : gb_config_parse_time(value, &n);
    if (!ok || n < o->min || n > o->max)
        return false;
    *out = n;
    return true;
}

static void set_text(const struct gb_option *o, const char *value, void *field)
{
    char *copy = texts[o - gb_options];
    memcpy(copy, value, strlen(value) + 1);
    memcpy(field, &copy, sizeof copy);
}

bool gb_config_set(const struct gb_option *o, const char *value, bool apply)
{
    struct gb_config scratch = {0}; /* where a value goes that is only checked */
    void *field = (char *)(apply ? &gb_config : &scratch) + o->offset;
    switch (o->kind) {
    case GB_KIND_BOOL:
        return gb_config_parse_bool(value, field);
    case GB_KIND_ENUM:
        return gb_config_parse_choice(o->choices, value, field);
    case GB_KIND_SIZE:
    case GB_KIND_TIME:
        return parse_number(o, value, field);
    case GB_KIND_SHARE:
        return gb_config_parse_share(value, field);
    case GB_KIND_TEXT:
        if (strlen(value) >= GB_CONFIG_TEXT_BYTES)
            return false;
        if (apply)
            set_text(o, value, field);
        return true;
    }
    return false;
}

static bool is_ours(const char *name, size_t length)
{
    for (size_t i = 0; i < GB_ARRAY_LEN(not_ours); i++)
        if (strncmp(not_ours[i], name, length) == 0 && not_ours[i][length] == 0)
            return false;
    return true;
}

/* One "GPUBOOST_X=value" of the environment. An empty value means "not set", as in shells. */
static void load_entry(const char *entry, size_t name_length)
{
    const struct gb_option *o = gb_config_find(entry, name_length);
    if (!o) {
        if (is_ours(entry, name_length))
            gb_config_complain(GB_COMPLAINT_UNKNOWN, NULL, 0, entry, name_length);
        return;
    }
    enum gb_config_source *source = &gb_config_sources[o - gb_options];
    const char *value = secure_getenv(o->name);
    if (*source != GB_SOURCE_DEFAULT || !value || !*value)
        return; /* the second of two entries: getenv gives the first */
    if (gb_config_set(o, value, true))
        *source = GB_SOURCE_ENVIRONMENT;
    else
        gb_config_complain(GB_COMPLAINT_VALUE, o, 0, value, strlen(value));
}

void gb_config_load(void)
{
    gb_config = defaults;
    memset(gb_config_sources, 0, sizeof gb_config_sources);
    gb_complaint_count = 0;
    if (getauxval(AT_SECURE)) {
        gb_config.disable = true;
        return;
    }
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, "GPUBOOST_", 9) != 0)
            continue;
        const char *equals = strchr(*entry, '=');
        if (equals)
            load_entry(*entry, (size_t)(equals - *entry));
    }
    if (!gb_config.disable)
        gb_environment_load();
}

bool gb_config_policy_on(enum gb_switch own, enum gb_profile needs)
{
    if (gb_config.disable || own == GB_SWITCH_OFF)
        return false;
    return own >= GB_SWITCH_ON || gb_config.policy >= (int)needs;
}

static void copy_choice(const char *choices, int index, char *out, size_t size)
{
    while (index-- > 0 && strchr(choices, ','))
        choices = strchr(choices, ',') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(choices, ","), choices);
}

bool gb_config_entry(unsigned index, struct gb_config_entry *out)
{
    static const char *const sources[] = {"default", "environment", "file"};
    if (index >= GB_OPTION_COUNT)
        return false;
    const struct gb_option *o = &gb_options[index];
    const void *field = (const char *)&gb_config + o->offset;
    out->name = o->name;
    out->source = sources[gb_config_sources[index]];
    switch (o->kind) {
    case GB_KIND_BOOL:
        snprintf(out->value, sizeof out->value, "%s", *(const bool *)field ? "on" : "off");
        break;
    case GB_KIND_ENUM:
        copy_choice(o->choices, *(const int *)field, out->value, sizeof out->value);
        break;
    case GB_KIND_SIZE:
        gb_config_format_size(*(const uint64_t *)field, out->value, sizeof out->value);
        break;
    case GB_KIND_TIME:
        gb_config_format_time(*(const uint64_t *)field, out->value, sizeof out->value);
        break;
    case GB_KIND_SHARE:
        gb_config_format_share(*(const uint64_t *)field, out->value, sizeof out->value);
        break;
    case GB_KIND_TEXT:
        snprintf(out->value, sizeof out->value, "%s", *(const char *const *)field);
        break;
    }
    return true;
}
