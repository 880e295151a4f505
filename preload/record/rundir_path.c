/* rundir_path.c: from GPUBOOST_OUT to a path. See rundir.h.
 *
 * Host, job, rank and program are other people's words: only letters, digits, '.', '_' and '-'
 * of them enter the path, and never a leading dot, so that they can be neither "/" nor "..".
 */
#include "record/rundir.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_value(struct gb_text *t, const char *value)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    char clean[65];
    size_t n = 0;
    for (; n < sizeof clean - 1 && value[n]; n++)
        clean[n] = strchr(allowed, value[n]) && (n || value[n] != '.') ? value[n] : '_';
    clean[n] = 0;
    gb_text_add(t, "%s", n ? clean : "none");
}

/* Civil date from days since 1970-01-01 (proleptic Gregorian), in eras of 400 years that begin in
 * March. gmtime_r takes the time zone lock and may read files. */
static void add_utc(struct gb_text *t, uint64_t seconds)
{
    uint64_t days = seconds / 86400 + 719468, rest = seconds % 86400;
    uint64_t era = days / 146097, day_of_era = days % 146097;
    uint64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
    uint64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    uint64_t year = era * 400 + year_of_era + (month >= 10);
    month = month < 10 ? month + 3 : month - 9;
    gb_text_add(t, "%04u%02u%02uT%02u%02u%02uZ", (unsigned)year, (unsigned)month, (unsigned)day,
                (unsigned)(rest / 3600), (unsigned)(rest / 60 % 60), (unsigned)(rest % 60));
}

/* %p %h %r %j %%; false for any other letter. */
static bool add_pattern(struct gb_text *t, const struct gb_rundir_names *names)
{
    for (const char *s = names->out; *s; s++) {
        if (*s != '%') {
            gb_text_add(t, "%c", *s);
            continue;
        }
        switch (*++s) {
        case 'p':
            gb_text_add(t, "%ld", names->pid);
            break;
        case 'h':
            add_value(t, names->host);
            break;
        case 'r':
            add_value(t, names->rank);
            break;
        case 'j':
            add_value(t, names->job);
            break;
        case '%':
            gb_text_add(t, "%%");
            break;
        default:
            return false;
        }
    }
    return true;
}

bool gb_rundir_add_base(struct gb_text *t, const char *state_home, const char *home)
{
    if (state_home[0] == '/')
        gb_text_add(t, "%s", state_home);
    else if (home[0] == '/')
        gb_text_add(t, "%s/.local/state", home);
    else
        return false;
    gb_text_add(t, "/gpuboost/");
    return true;
}

static bool add_default(struct gb_text *t, const struct gb_rundir_names *names)
{
    if (!gb_rundir_add_base(t, names->state_home, names->home))
        return false;
    add_value(t, names->program);
    gb_text_add(t, "-");
    add_utc(t, names->unix_seconds);
    gb_text_add(t, "-%ld", names->pid);
    return true;
}

static bool refuse(struct gb_rundir *out, const char *why)
{
    out->path[0] = 0;
    snprintf(out->error, sizeof out->error, "%s", why);
    return false;
}

/* "/a/b/", "/a/b/." and "/a/b" are one directory; siblings are named after "/a/b". */
static void trim_end(char *path)
{
    size_t n = strlen(path);
    while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
        path[--n] = 0;
}

bool gb_rundir_expand(const struct gb_rundir_names *names, struct gb_rundir *out)
{
    struct gb_text t;
    out->error[0] = 0;
    gb_text_init(&t, out->path, sizeof out->path - 8); /* room for ".99" */
    if (!*names->out) {
        if (!add_default(&t, names))
            return refuse(out, "neither HOME nor XDG_STATE_HOME is an absolute path; set "
                               "GPUBOOST_OUT");
    } else {
        if (*names->out != '/' && getcwd(out->path, t.size) && out->path[0] == '/') {
            t.used = strlen(out->path);
            gb_text_add(&t, "/");
        }
        if (!add_pattern(&t, names))
            return refuse(out, "GPUBOOST_OUT knows %p, %h, %r, %j and %% only");
    }
    if (t.used + 1 >= t.size)
        return refuse(out, "the path of the run directory is too long");
    trim_end(out->path);
    return true;
}
