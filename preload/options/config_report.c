/* config_report.c: what is read and said about options when the process arms. See config.h.
 *
 * The config file is below the environment and held to the same rules. Everything wrong is said
 * once, with the name, the value, what is accepted and what stays in force. Runs once, on the
 * thread that arms; the file is bounded and must be a regular file.
 */
#include "options/config_internal.h"

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_FILE_BYTES 16384

/* Decided before the file is read. */
static bool is_environment_only(const struct gb_option *o)
{
    ptrdiff_t i = o - gb_options;
    return i == GB_OPTION_INDEX_disable || i == GB_OPTION_INDEX_only ||
           i == GB_OPTION_INDEX_not_in || i == GB_OPTION_INDEX_config_file;
}

static char *trim(char *s)
{
    s += strspn(s, " \t\r");
    size_t n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        s[--n] = 0;
    return s;
}

static void apply_option(const struct gb_option *o, const char *value, int line, bool *seen)
{
    ptrdiff_t index = o - gb_options;
    bool from_environment = gb_config_sources[index] == GB_SOURCE_ENVIRONMENT;
    if (is_environment_only(o)) {
        gb_config_complain(GB_COMPLAINT_ENV_ONLY, o, line, "", 0);
    } else if (seen[index]) {
        gb_config_complain(GB_COMPLAINT_TWICE, o, line, "", 0);
    } else if (*value && !gb_config_set(o, value, !from_environment)) {
        gb_config_complain(GB_COMPLAINT_VALUE, o, line, value, strlen(value));
    } else {
        seen[index] = true;
        if (*value && !from_environment)
            gb_config_sources[index] = GB_SOURCE_FILE;
    }
}

/* One line: blank, "# comment", or NAME=value; blanks around either are not part of it. */
static void apply_line(char *text, int line, bool *seen)
{
    text = trim(text);
    if (!*text || *text == '#')
        return;
    char *equals = strchr(text, '=');
    if (!equals) {
        gb_config_complain(GB_COMPLAINT_LINE, NULL, line, text, strlen(text));
        return;
    }
    *equals = 0;
    const char *name = trim(text), *value = trim(equals + 1);
    const struct gb_option *o = gb_config_find(name, strlen(name));
    if (o)
        apply_option(o, value, line, seen);
    else
        gb_config_complain(GB_COMPLAINT_UNKNOWN, NULL, line, name, strlen(name));
}

void gb_config_apply_file(char *text, size_t length)
{
    bool seen[GB_OPTION_COUNT] = {false};
    char *end = text + length;
    text[length] = 0;
    for (int line = 1; text < end; line++) {
        /* A zero byte ends the text of its line, the line itself goes on to its newline. */
        char *newline = memchr(text, '\n', (size_t)(end - text));
        char *next = newline ? newline + 1 : end;
        if (newline)
            *newline = 0;
        apply_line(text, line, seen);
        text = next;
    }
}

static void read_file(const char *path)
{
    static char text[CONFIG_FILE_BYTES];
    long n = gb_file_read(path, text, sizeof text);
    if (n >= 0) {
        gb_config_apply_file(text, (size_t)n);
        return;
    }
    char why[64];
    int length = n == -EFBIG
                     ? snprintf(why, sizeof why, "longer than %d bytes", CONFIG_FILE_BYTES - 1)
                 : n == -EINVAL ? snprintf(why, sizeof why, "not a regular file")
                                : snprintf(why, sizeof why, "%s", gb_errno_text((int)-n));
    gb_config_complain(GB_COMPLAINT_FILE, NULL, 0, why, (size_t)length);
}

static void add_accepted(struct gb_text *t, const struct gb_option *o)
{
    char low[32], high[32];
    switch (o->kind) {
    case GB_KIND_BOOL:
        gb_text_add(t, "on or off");
        break;
    case GB_KIND_ENUM:
        gb_text_add(t, "one of %s", o->choices);
        break;
    case GB_KIND_SIZE:
        gb_config_format_size(o->min, low, sizeof low);
        gb_config_format_size(o->max, high, sizeof high);
        gb_text_add(t, "a size from %s to %s (bytes, or with K, M, G, T)", low, high);
        break;
    case GB_KIND_TIME:
        gb_config_format_time(o->min, low, sizeof low);
        gb_config_format_time(o->max, high, sizeof high);
        gb_text_add(t, "a time from %s to %s (with ns, us, ms or s)", low, high);
        break;
    case GB_KIND_SHARE:
        gb_text_add(t, "off or 1/n, such as 1/100");
        break;
    case GB_KIND_TEXT:
        gb_text_add(t, "a text of at most %d bytes", GB_CONFIG_TEXT_BYTES - 1);
        break;
    }
}

static void add_in_force(struct gb_text *t, const struct gb_option *o)
{
    static struct gb_config_entry entry;
    gb_config_entry((unsigned)(o - gb_options), &entry);
    gb_text_add(t, "; %.200s (%s) stays in force", *entry.value ? entry.value : "the empty text",
                entry.source);
}

static void add_what(struct gb_text *t, const struct gb_complaint *c)
{
    const char *nearest;
    switch (c->kind) {
    case GB_COMPLAINT_VALUE:
        gb_text_add(t, "%s=%s is not ", c->option->name, c->text);
        add_accepted(t, c->option);
        add_in_force(t, c->option);
        break;
    case GB_COMPLAINT_UNKNOWN:
        nearest = gb_config_nearest(c->text);
        gb_text_add(t, "%s is not an option", c->text);
        if (nearest)
            gb_text_add(t, "; did you mean %s?", nearest);
        break;
    case GB_COMPLAINT_LINE:
        gb_text_add(t, "\"%s\" is not NAME=value; ignored", c->text);
        break;
    case GB_COMPLAINT_ENV_ONLY:
        gb_text_add(t, "%s works in the environment only; ignored", c->option->name);
        break;
    case GB_COMPLAINT_TWICE:
        gb_text_add(t, "%s is set a second time; the first is kept", c->option->name);
        break;
    case GB_COMPLAINT_FILE:
        gb_text_add(t, "cannot be read: %s; ignored", c->text);
        break;
    }
}

static void say_complaint(const struct gb_complaint *c)
{
    char text[768];
    struct gb_text t;
    gb_text_init(&t, text, sizeof text);
    if (c->line)
        gb_text_add(&t, "%.200s:%d: ", gb_config.config_file, c->line);
    else if (c->kind == GB_COMPLAINT_FILE)
        gb_text_add(&t, "GPUBOOST_CONFIG=%.200s ", gb_config.config_file);
    add_what(&t, c);
    gb_log(GB_LOG_WARN, "%s", text);
}

/* Each value in its own line as NAME=value, so that it can be pasted back. */
static void show(void)
{
    static struct gb_config_entry entry;
    static char text[2 * GB_CONFIG_TEXT_BYTES];
    struct gb_text t;
    gb_log(GB_LOG_QUIET, "options in force (gpuboost %s):", GB_VERSION);
    for (unsigned i = 0; gb_config_entry(i, &entry); i++) {
        gb_text_init(&t, text, sizeof text - 1);
        gb_text_add(&t, "gpuboost:   %s=", entry.name);
        gb_text_add_clean(&t, entry.value);
        gb_text_add(&t, " (%s)\n", entry.source);
        gb_log_raw(text, t.used);
    }
}

void gb_config_report(void)
{
    if (*gb_config.config_file)
        read_file(gb_config.config_file);
    unsigned kept = gb_complaint_count < GB_COMPLAINTS_MAX ? gb_complaint_count : GB_COMPLAINTS_MAX;
    for (unsigned i = 0; i < kept; i++)
        say_complaint(&gb_complaints[i]);
    if (gb_complaint_count > kept)
        gb_log(GB_LOG_WARN, "%u further faulty options are not listed", gb_complaint_count - kept);
    gb_complaint_count = 0;
    if (gb_config.show_config)
        show();
}
